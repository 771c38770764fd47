"""Both rearrangement bounds of aligned float32 rows, sorted side by side in vector registers.

All of a block is done in one call: threads that ask Python for the next few rows wait for each
other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from recos._kernels import compiled, matrix
from recos._kernels.sorting import (
    FUSED,
    LANES,
    OUTPUT,
    PLACES,
    make_room,
    place_of,
    sort_into_lanes,
)

_WIDE = ir.VectorType(ir.DoubleType(), LANES)
_SUMS = types.Array(types.float64, 2, "C")


def sorted_products(u: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Write u↑·v↑ and u↑·v↓ of aligned rows, added up in float64, to ``out`` (n, 2).

    Sorted rows never leave the registers and the cache. The rows must fit the lanes.
    """
    _products_in_lanes(u, v, make_room(u.shape[1]), make_room(u.shape[1]), out)


@intrinsic
def _add_both_products(typing_context, u, v, place, mirror, sums):  # type: ignore[no-untyped-def]
    """Add the products of some numbers of u, in every lane, with v ascending and descending."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        def numbers(which: int, row: Any, step: int) -> list[Any]:
            data = context.make_array(signature.args[which])(context, builder, args[which]).data
            rows = [builder.add(row, row.type(step * k)) for k in range(PLACES)]
            places = [place_of(builder, data, row, LANES) for row in rows]
            return [builder.fpext(builder.load(place, align=4), _WIDE) for place in places]

        sums_type, sums = signature.args[4], args[4]
        data = context.make_array(sums_type)(context, builder, sums).data
        left, place, mirror = numbers(0, args[2], 1), args[2], args[3]
        for i, right in enumerate([numbers(1, place, 1), numbers(1, mirror, -1)]):
            total_at = place_of(builder, data, place.type(i), LANES, _WIDE)
            total = builder.load(total_at, align=8)
            for a, b in zip(left, right, strict=True):
                total = builder.fadd(total, builder.fmul(a, b, flags=FUSED), flags=FUSED)
            builder.store(total, total_at, align=8)
        return context.get_dummy_value()

    return types.void(u, v, types.intp, types.intp, sums), generate


@compiled([types.void(*2 * [matrix(types.float32)], OUTPUT, OUTPUT, _SUMS)])
def _products_in_lanes(u, v, room_u, room_v, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write both products of sorted rows; there are as many rows as lanes or more."""
    n, width = u.shape
    whole, last = width - width % PLACES, width - 1
    sums = np.empty((2, LANES))
    for start in range(0, n, LANES):
        first = min(start, n - LANES)
        sort_into_lanes(u, first, room_u)
        sort_into_lanes(v, first, room_v)
        for lane in range(LANES):
            sums[0, lane] = sums[1, lane] = 0
        for j in range(0, whole, PLACES):
            _add_both_products(room_u, room_v, j, last - j, sums)  # type: ignore[call-arg]
        for j in range(whole, width):
            for lane in range(LANES):
                a = np.float64(room_u[j, lane])
                sums[0, lane] += a * room_v[j, lane]
                sums[1, lane] += a * room_v[last - j, lane]
        for lane in range(LANES):
            out[first + lane, 0], out[first + lane, 1] = sums[0, lane], sums[1, lane]

"""Sort float32 rows side by side in vector registers, and make what is wanted of them there.

That is the rows themselves, their products with a basis, or both products of aligned rows. A block
is done in one call: threads that ask Python for the next few rows wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from recos._kernels import compiled, matrix, part_of_others
from recos._kernels.networks import (
    LANES,
    MASK,
    REGISTER,
    RUN,
    place_of,
    sort_into_lanes,
    turn,
)

_WIDEST = 2**13  # wider rows of all lanes leave the cache, and NumPy is as fast
_PLACES, _VECTORS = 8, 4  # that are multiplied at once: as many as the registers hold
_WIDE = ir.VectorType(ir.DoubleType(), LANES)
_FIRST = ir.Constant(ir.IntType(32), 0)
_FUSED = ("contract",)  # one rounding for a product and its sum
_NONE, _NO_BOUNDS = np.empty((0, LANES), np.float32), np.empty((0, 2))


def for_lanes(x: np.ndarray) -> bool:
    """Whether rows are of the kind that can be sorted side by side, and faster so."""
    return x.dtype == np.float32 and RUN < x.shape[1] <= _WIDEST


def fits_lanes(x: np.ndarray) -> bool:
    """Whether rows are of that kind, and enough for all lanes."""
    return for_lanes(x) and len(x) >= LANES


def sort_rows(x: np.ndarray, out: np.ndarray) -> None:
    """Write the rows of ``x``, each sorted, to ``out``; both are contiguous."""
    if fits_lanes(x):
        _in_lanes(x, _NONE, _NONE, _NONE, _make_room(x.shape[1]), _NONE, _NONE, out, _NO_BOUNDS)
    else:
        out[...] = x
        out.sort(axis=-1)


def coordinates(x: np.ndarray, even: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Return the products of sorted rows with even, then with odd vectors, given by their halves.

    Sorted rows never leave the registers and the cache. The rows must fit the lanes.
    """
    parts = _in_fours(even), _in_fours(odd[:, ::-1])
    count = sum(map(len, parts))
    sums, found = np.empty((count, LANES), np.float32), np.empty((len(x), count), np.float32)
    room = _make_room(x.shape[1])
    _in_lanes(x, _NONE, *parts, room, _NONE, sums, found, _NO_BOUNDS)
    return found[:, np.r_[: len(even), len(parts[0]) : len(parts[0]) + len(odd)]]


def sorted_products(u: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Write u↑·v↑ and u↑·v↓ of aligned rows, added up in float64, to ``out`` (n, 2).

    Sorted rows never leave the registers and the cache. A one-row input goes with every row. The
    result for two rows is the same whatever other rows there are.
    """
    if not len(out):
        return
    found = np.empty((max(len(out), LANES), 2))
    rooms = _make_room(u.shape[1]), _make_room(u.shape[1])
    _in_lanes(_enough(u), _enough(v), _NONE, _NONE, *rooms, _NONE, _NONE, found)
    out[:] = found[: len(out)]


def _enough(x: np.ndarray) -> np.ndarray:
    """Return as many rows as there are lanes, or more: the last is repeated."""
    return x if len(x) >= LANES else x[np.minimum(np.arange(LANES), len(x) - 1)]


def _in_fours(vectors: np.ndarray) -> np.ndarray:
    """Return vectors and as many of zeros as are missing to a multiple of those taken at once."""
    return np.pad(vectors.astype(np.float32), [(0, -len(vectors) % _VECTORS), (0, 0)])


def _make_room(width: int) -> np.ndarray:
    """Return room for a number of each lane in each row, in whole cache lines."""
    size = max(RUN, 1 << (width - 1).bit_length())
    numbers = np.empty((size + 1) * LANES, np.float32)
    start = (-numbers.ctypes.data // numbers.itemsize) % LANES
    return numbers[start : start + size * LANES].reshape(size, LANES)


@intrinsic
def _add_products(typing_context, room, row, basis, vector, place, sums, to):  # type: ignore[no-untyped-def]
    """Add the products of some numbers of every lane with those of some vectors to ``sums``."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        room_type, _, basis_type, _, _, sums_type, _ = signature.args
        data, row, basis, vector, place, sums, to = args
        data = context.make_array(room_type)(context, builder, data).data
        basis = context.make_array(basis_type)(context, builder, basis)
        sums = context.make_array(sums_type)(context, builder, sums).data
        width = builder.extract_value(basis.shape, 1)
        numbers = [
            builder.load(place_of(builder, data, builder.add(row, row.type(k)), LANES), align=4)
            for k in range(_PLACES)
        ]
        for i in range(_VECTORS):
            which = builder.add(vector, vector.type(i))
            start = builder.gep(basis.data, [builder.add(builder.mul(which, width), place)])
            total_at = place_of(builder, sums, builder.add(to, to.type(i)), LANES)
            total = builder.load(total_at, align=4)
            for k, number in enumerate(numbers):
                weight = builder.load(builder.gep(start, [place.type(k)]), align=4)
                one = builder.insert_element(ir.Constant(REGISTER, ir.Undefined), weight, _FIRST)
                zeros = ir.Constant(MASK, [0] * LANES)
                every = builder.shuffle_vector(one, ir.Constant(REGISTER, ir.Undefined), zeros)
                product = builder.fmul(number, every, flags=_FUSED)
                total = builder.fadd(total, product, flags=_FUSED)
            builder.store(total, total_at, align=4)
        return context.get_dummy_value()

    where = types.intp
    return types.void(room, where, basis, where, where, sums, where), generate


@part_of_others()
def _coordinates(room, even, odd, sums):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the products of sorted lanes, which are folded, with a basis to ``sums``."""
    half, middle = odd.shape[1], even.shape[1]
    for j in range(half):  # sums in the place of the lower half, differences of the upper
        mirror = half + middle - 1 - j
        for lane in range(LANES):
            low, high = room[j, lane], room[mirror, lane]
            room[j, lane], room[mirror, lane] = high + low, high - low
    for i in range(len(sums)):
        for lane in range(LANES):
            sums[i, lane] = 0
    for parity in range(2):
        basis, row, after = (odd, middle, len(even)) if parity else (even, 0, 0)
        whole = basis.shape[1] - basis.shape[1] % _PLACES
        for j in range(0, whole, _PLACES):
            for i in range(0, len(basis), _VECTORS):
                _add_products(room, row + j, basis, i, j, sums, after + i)  # type: ignore[call-arg]
        for j in range(whole, basis.shape[1]):
            for i in range(len(basis)):
                for lane in range(LANES):
                    sums[after + i, lane] += basis[i, j] * room[row + j, lane]


@intrinsic
def _add_both_products(typing_context, u, v, place, mirror, sums):  # type: ignore[no-untyped-def]
    """Add the products of some numbers of u, in every lane, with v ascending and descending."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        def numbers(which: int, row: Any, step: int) -> list[Any]:
            data = context.make_array(signature.args[which])(context, builder, args[which]).data
            rows = [builder.add(row, row.type(step * k)) for k in range(_PLACES)]
            places = [place_of(builder, data, row, LANES) for row in rows]
            return [builder.fpext(builder.load(place, align=4), _WIDE) for place in places]

        sums_type, sums = signature.args[4], args[4]
        data = context.make_array(sums_type)(context, builder, sums).data
        left, place, mirror = numbers(0, args[2], 1), args[2], args[3]
        for i, right in enumerate([numbers(1, place, 1), numbers(1, mirror, -1)]):
            total_at = place_of(builder, data, place.type(i), LANES, _WIDE)
            some = [builder.fmul(a, b) for a, b in zip(left, right, strict=True)]
            while len(some) > 1:  # in pairs, which rounds less than one after the other
                some = [builder.fadd(*pair) for pair in zip(some[::2], some[1::2], strict=True)]
            builder.store(builder.fadd(builder.load(total_at, align=8), some[0]), total_at, align=8)
        return context.get_dummy_value()

    return types.void(u, v, types.intp, types.intp, sums), generate


@part_of_others()
def _both_products(room_u, room_v, width, sums):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the products of sorted lanes, ascending and descending, to ``sums``."""
    whole, last = width - width % _PLACES, width - 1
    for lane in range(LANES):
        sums[0, lane] = sums[1, lane] = 0
    for j in range(0, whole, _PLACES):
        _add_both_products(room_u, room_v, j, last - j, sums)  # type: ignore[call-arg]
    for j in range(whole, width):
        for lane in range(LANES):
            a = np.float64(room_u[j, lane])
            sums[0, lane] += a * room_v[j, lane]
            sums[1, lane] += a * room_v[last - j, lane]


@part_of_others()
def _write_lanes(sums, out, first):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write what was added up in each lane to the row of that lane."""
    for i in range(len(sums)):
        for lane in range(LANES):
            out[first + lane, i] = sums[i, lane]


_INPUT, _OUTPUT = matrix(types.float32), matrix(types.float32, readonly=False)
_BOUNDS = types.Array(types.float64, 2, "C")


@compiled([types.void(*4 * [_INPUT], *4 * [_OUTPUT], _BOUNDS)])
def _in_lanes(u, v, even, odd, room_u, room_v, sums, out, bounds):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Sort rows, then write them, their products with a basis, or with other sorted rows.

    What is wanted is what there is room for. One function for all three: most of it is the same,
    and takes long to compile. There are as many rows as lanes or more; of ``u`` and ``v``, rows
    that are no more than lanes go with all others. Odd vectors come last place first.
    """
    n, width = max(len(out), len(bounds)), u.shape[1]
    whole = width - width % LANES
    wide_sums = np.empty((2, LANES))
    for start in range(0, n, LANES):
        first = min(start, n - LANES)  # some rows may be sorted twice
        for second in range(2 if len(bounds) else 1):  # called once, the network is compiled once
            x, room = (v, room_v) if second else (u, room_u)
            if start == 0 or len(x) == n:
                sort_into_lanes(x, min(first, len(x) - LANES), room)
        if len(bounds):
            _both_products(room_u, room_v, width, wide_sums)
            _write_lanes(wide_sums, bounds, first)
        elif len(sums):
            _coordinates(room_u, even, odd, sums)
            _write_lanes(sums, out, first)
        else:
            for j in range(0, whole, LANES):
                turn(room_u, j, 0, out, first, j)  # type: ignore[call-arg]
            for j in range(whole, width):
                for lane in range(LANES):
                    out[first + lane, j] = room_u[j, lane]

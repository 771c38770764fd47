"""Products of tiles, turned into similarities in place, in one pass over the tile."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from recos._kernels import for_reals, matrix, vector


@for_reals(
    lambda real: types.int64(
        matrix(real, readonly=False), types.int64, matrix(real), matrix(real),
        vector(real), vector(real), real, real,
    )
)  # fmt: skip
def divide_by_rearrangement(  # type: ignore[no-untyped-def]
    dots, first, even, odd, norm_u, norm_v, least, near
):
    """Turn dot products into recos in place; even ± odd = 2 u↑·v↑ and 2 u↑·v↓.

    The tile begins at column ``first`` of ``dots``. A pair becomes NaN, and is counted, where the
    bound is less than ``least`` of ‖u‖ ‖v‖, or where the dot product is less than ``near`` of it,
    so that its sign is open, and the other bound is.
    """
    one, half, nan = dots.dtype.type(1), dots.dtype.type(0.5), dots.dtype.type(np.nan)
    doubtful = 0
    for i in range(len(norm_u)):
        in_row: Any = np.int32(0)
        u, row = norm_u[i], dots[i, first : first + len(norm_v)]
        for j in range(len(norm_v)):
            d = row[j]
            up, down = half * abs(even[i, j] + odd[i, j]), half * abs(even[i, j] - odd[i, j])
            bound = up if d >= 0 else down
            other = down if d >= 0 else up
            size = u * norm_v[j]
            tiny = least * size
            score = d / (bound if bound > 0 else one)
            score = one if score > one else score
            score = -one if score < -one else score
            doubt = bound < tiny or (abs(d) < near * size and other < tiny)
            row[j] = nan if doubt else score
            in_row += np.int32(1) if doubt else np.int32(0)
        doubtful += in_row
    return doubtful


@for_reals(
    lambda real: types.void(
        matrix(real, readonly=False), types.int64, *[vector(real)] * 6, *[real] * 4
    )
)
def divide_by_norms(  # type: ignore[no-untyped-def]
    dots,
    first,
    norm_u,
    norm_v,
    scale_u,
    scale_v,
    over_u,
    over_v,
    cauchy_schwarz,
    mean_square,
    shared,
    low,
):
    """Turn dot products into a similarity in place; the bound is a weighted sum (``Weights``).

    ``over_u`` and ``over_v`` are the reciprocals of the scales.
    """
    one, half = dots.dtype.type(1), mean_square / 2
    for i in range(len(norm_u)):
        u, scale, over = norm_u[i], scale_u[i], over_u[i]
        row = dots[i, first : first + len(norm_v)]
        for j in range(len(norm_v)):
            d, v = row[j], norm_v[j]
            squares = u * u * (scale * over_v[j]) + v * v * (scale_v[j] * over)
            bound = cauchy_schwarz * (u * v) + half * squares + shared * d
            score = d / (bound if bound > 0 else one)
            score = one if score > one else score
            row[j] = low if score < low else score


@for_reals(lambda real: types.void(matrix(real, readonly=False), types.int64, *[vector(real)] * 2))
def divide_by_lengths(dots, first, over_u, over_v):  # type: ignore[no-untyped-def]
    """Turn dot products into cosines in place, given the reciprocals of the norms."""
    one = dots.dtype.type(1)
    for i in range(len(over_u)):
        u, row = over_u[i], dots[i, first : first + len(over_v)]
        for j in range(len(over_v)):
            score = row[j] * u * over_v[j]
            score = one if score > one else score
            row[j] = -one if score < -one else score

"""Compiled kernels for NumPy blocks: they release the GIL, add up in float64 and allocate nothing.

The array-namespace code in ``_terms`` says the same in a few lines for every library and is what
these are tested against. Importing this file loads Numba, so it is imported on first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

_REALS = (types.float32, types.float64)


def _matrix(real: Any, *, readonly: bool = True) -> Any:
    return types.Array(real, 2, "C", readonly=readonly)


def _compile(signatures: list[object], *, reorder: bool = False):  # type: ignore[no-untyped-def]
    # Reordering lets sums use vector registers, but takes products out of range elsewhere. Nothing
    # may assume that NaN does not occur.
    fast = {"reassoc", "contract"} if reorder else {"contract"}
    return njit(signatures, nogil=True, cache=True, fastmath=fast)


_sums = _compile([
    types.void(_matrix(real), _matrix(real), _matrix(types.float64, readonly=False))
    for real in _REALS
], reorder=True)  # fmt: skip


@_sums
def products(u, v, out):  # type: ignore[no-untyped-def]
    """Write u·v, u·u and v·v of each row to ``out`` (3, n). A one-row input goes with every row."""
    for i in range(out.shape[1]):
        row_u = u[i if u.shape[0] > 1 else 0]
        row_v = v[i if v.shape[0] > 1 else 0]
        dot = square_u = square_v = 0.0
        for j in range(row_u.shape[0]):
            a, b = np.float64(row_u[j]), np.float64(row_v[j])
            dot += a * b
            square_u += a * a
            square_v += b * b
        out[0, i], out[1, i], out[2, i] = dot, square_u, square_v


@_compile([
    types.void(_matrix(real), types.Array(types.float64, 1, "C")) for real in _REALS
], reorder=True)  # fmt: skip
def squares(x, out):  # type: ignore[no-untyped-def]
    """Write the sum of the squares of each row."""
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += np.float64(x[i, j]) * np.float64(x[i, j])
        out[i] = total


@_sums
def sorted_products(u, v, out):  # type: ignore[no-untyped-def]
    """Write u↑·v↑ and u↑·v↓ of sorted rows to ``out`` (2, n), as :func:`products` does."""
    last = u.shape[1] - 1
    for i in range(out.shape[1]):
        row_u = u[i if u.shape[0] > 1 else 0]
        row_v = v[i if v.shape[0] > 1 else 0]
        up = down = 0.0
        for j in range(row_u.shape[0]):
            a = np.float64(row_u[j])
            up += a * np.float64(row_v[j])
            down += a * np.float64(row_v[last - j])
        out[0, i], out[1, i] = up, down


@_compile([types.void(_matrix(real), _matrix(real, readonly=False)) for real in _REALS])
def fold(ascending, out):  # type: ignore[no-untyped-def]
    """Write each row plus itself reversed, the middle, and each row minus itself reversed."""
    width = ascending.shape[1]
    half = width // 2
    for i in range(ascending.shape[0]):
        for j in range(half):
            low, high = ascending[i, j], ascending[i, width - 1 - j]
            out[i, j], out[i, width - half + j] = high + low, high - low
        if width % 2:
            out[i, half] = ascending[i, half]


def _vector(real: Any) -> Any:
    return types.Array(real, 1, "C", readonly=True)


@_compile([
    types.int64(_matrix(real, readonly=False), types.int64, _matrix(real), _matrix(real),
                _vector(real), _vector(real), real, real)
    for real in _REALS
])  # fmt: skip
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


@_compile([
    types.void(_matrix(real, readonly=False), types.int64, *[_vector(real)] * 6, *[real] * 4)
    for real in _REALS
])  # fmt: skip
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


@_compile([
    types.void(_matrix(real, readonly=False), types.int64, *[_vector(real)] * 2) for real in _REALS
])  # fmt: skip
def divide_by_lengths(dots, first, over_u, over_v):  # type: ignore[no-untyped-def]
    """Turn dot products into cosines in place, given the reciprocals of the norms."""
    one = dots.dtype.type(1)
    for i in range(len(over_u)):
        u, row = over_u[i], dots[i, first : first + len(over_v)]
        for j in range(len(over_v)):
            score = row[j] * u * over_v[j]
            score = one if score > one else score
            row[j] = -one if score < -one else score

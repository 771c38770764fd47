"""Dot products and squares of aligned rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from recos._kernels import for_reals, matrix


def _two_matrices(real: Any) -> object:
    return types.void(matrix(real), matrix(real), matrix(types.float64, readonly=False))


@for_reals(_two_matrices, reorder=True)
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


@for_reals(lambda real: types.void(matrix(real), types.Array(types.float64, 1, "C")), reorder=True)
def squares(x, out):  # type: ignore[no-untyped-def]
    """Write the sum of the squares of each row."""
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += np.float64(x[i, j]) * np.float64(x[i, j])
        out[i] = total


@for_reals(_two_matrices, reorder=True)
def sorted_products(u, v, out):  # type: ignore[no-untyped-def]
    """Write u↑·v↑ and u↑·v↓ of sorted rows to ``out`` (n, 2), as :func:`products` does."""
    last = np.uintp(u.shape[1] - 1)
    for i in range(out.shape[0]):
        row_u = u[i if u.shape[0] > 1 else 0]
        row_v = v[i if v.shape[0] > 1 else 0]
        up = down = 0.0
        for j in range(np.uintp(row_u.shape[0])):  # unsigned: no index counts from the end
            a = np.float64(row_u[j])
            up += a * np.float64(row_v[j])
            down += a * np.float64(row_v[last - j])
        out[i, 0], out[i, 1] = up, down


@for_reals(lambda real: types.void(matrix(real), matrix(real, readonly=False)))
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

"""Dot products and squares of aligned rows."""

from __future__ import annotations

import numpy as np
from numba import types

from recos._kernels import REALS, compiled, matrix

_sums = compiled([
    types.void(matrix(real), matrix(real), matrix(types.float64, readonly=False)) for real in REALS
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


@compiled([
    types.void(matrix(real), types.Array(types.float64, 1, "C")) for real in REALS
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


@compiled([types.void(matrix(real), matrix(real, readonly=False)) for real in REALS])
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


@compiled([types.void(
    matrix(types.float32),
    types.Array(types.int8, 2, "C", readonly=True),
    types.Array(types.float32, 2, "C"),
)], reorder=True)  # fmt: skip
def code_products(queries, codes, out):  # type: ignore[no-untyped-def]
    """Write the products of float32 rows with int8 rows."""
    for i in range(queries.shape[0]):
        query = queries[i]
        for j in range(codes.shape[0]):
            row, total = codes[j], np.float32(0)
            for k in range(row.shape[0]):
                total += query[k] * np.float32(row[k])
            out[i, j] = total

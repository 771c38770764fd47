"""Rows as int8 codes: made, and their products."""

from __future__ import annotations

import numpy as np
from numba import types

from recos._kernels import compiled, matrix, vector

_CODES = types.Array(types.int8, 2, "C", readonly=True)
_NUMBERS = types.Array(types.float32, 1, "C")
_ROOM = types.Array(types.float32, 2, "C")


@compiled([
    types.void(matrix(types.float32), types.Array(types.int8, 2, "C"), _NUMBERS, _NUMBERS)
], reorder=True)  # fmt: skip
def encode(x, codes, scales, lost):  # type: ignore[no-untyped-def]
    """Write the codes of finite rows, their scales, and the norm of what the codes leave out."""
    least = np.float32(1e-30)  # of shorter rows nothing is known
    for i in range(x.shape[0]):
        row, code = x[i], codes[i]
        peak = least
        for j in range(row.shape[0]):
            size = abs(row[j])
            peak = size if size > peak else peak
        scale = peak / np.float32(127)
        over = np.float32(1) / scale
        rest = np.float32(0)
        for j in range(row.shape[0]):
            share = row[j] * over
            number = np.rint(share)
            code[j] = np.int8(number)
            rest += (share - number) * (share - number)  # in units of the scale: never too small
        scales[i], lost[i] = scale, scale * np.sqrt(rest)


@compiled([
    types.void(
        types.Array(types.int32, 2, "C", readonly=True),
        vector(types.float32), vector(types.float32), _ROOM,
    )
])  # fmt: skip
def scale_products(products, scale_u, scale_v, out):  # type: ignore[no-untyped-def]
    """Write products of codes as products of the rows that they stand for."""
    for i in range(products.shape[0]):
        u = scale_u[i]
        for j in range(products.shape[1]):
            out[i, j] = np.float32(products[i, j]) * (u * scale_v[j])


@compiled([types.void(matrix(types.float32), _CODES, vector(types.float32), _ROOM)], reorder=True)
def products_with_numbers(queries, codes, scales, out):  # type: ignore[no-untyped-def]
    """Write the products of float32 rows with the rows that codes stand for."""
    for i in range(queries.shape[0]):
        query = queries[i]
        for j in range(codes.shape[0]):
            row, total = codes[j], np.float32(0)
            for k in range(row.shape[0]):
                total += query[k] * np.float32(row[k])
            out[i, j] = total * scales[j]

"""Triton kernels: matrix products whose tiles never reach memory.

* ``maxima``: products of queries with rows, of which only the largest of each 64 rows is written.

Both factors are read by the bulk copy engine where there is one, and multiplied by the tensor cores:
float16 and bfloat16 with sums in float32, int8 with exact sums.
"""

# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

TILE = 64  # rows of which the largest product is kept
# Queries and rows of a block, numbers multiplied at a time, warps, stages: the fastest on an H200.
BLOCKS = {2: (128, 256, 64, 8, 4), 1: (128, 128, 128, 4, 3)}


@triton.jit
def _maxima(
    queries, rows, query_scale, scale, weight, out, query_count, row_count, tiles,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    WHOLE: tl.constexpr, WEIGHTED: tl.constexpr, TURNS: tl.constexpr,
):  # fmt: skip
    """Write ``out[t, i]``, the largest product of query i with a row of tile t."""
    down = tl.cdiv(query_count, M)
    pid = tl.program_id(0)
    m, n = (pid % down) * M, (pid // down) * N  # the same rows for all queries, one after another
    total = tl.zeros((M, N), tl.int32 if WHOLE else tl.float32)
    for k in range(TURNS):
        some = queries.load([m, k * K])
        others = rows.load([n, k * K])
        total = tl.dot(some, others.T, total, out_dtype=tl.int32 if WHOLE else tl.float32)
    i, t = m + tl.arange(0, M), n // TILE + tl.arange(0, N // TILE)
    if WEIGHTED:
        j = n + tl.arange(0, N)
        times = tl.load(weight + j, mask=j < row_count, other=0)[None, :]
        total = tl.where(times != 0, total, 0) if WHOLE else total * times
    most = tl.max(tl.reshape(total, (M, N // TILE, TILE)), 2)
    if WHOLE:  # a tile has one scale
        most = most.to(tl.float32) * tl.load(scale + t, mask=t < tiles, other=0)[None, :]
        most *= tl.load(query_scale + i, mask=i < query_count, other=0)[:, None]
    inside = (i < query_count)[:, None] & (t < tiles)[None, :]
    tl.store(out + t.to(tl.int64)[None, :] * query_count + i[:, None], most, mask=inside)


def maxima(queries, rows, query_scale, scale, weight, blocks=None):
    """Return the largest product of each query with the rows of each tile, shape (tiles, n).

    Where there is a ``weight`` (m,), products are multiplied with that of their row. Products of
    int8 are multiplied with the scale of the query (n,) and of the tile (tiles,), and left out where
    the weight of a row is 0.
    """
    m, n, k, warps, stages = blocks or BLOCKS[rows.element_size()]
    tiles = triton.cdiv(len(rows), TILE)
    out = torch.empty((tiles, len(queries)), dtype=torch.float32, device=rows.device)
    width = rows.shape[1]
    grid = (triton.cdiv(len(queries), m) * triton.cdiv(len(rows), n),)
    with torch.cuda.device(rows.device):
        _maxima[grid](
            TensorDescriptor.from_tensor(queries, [m, k]),
            TensorDescriptor.from_tensor(rows, [n, k]),
            query_scale, scale, rows if weight is None else weight, out,
            len(queries), len(rows), tiles,
            M=m, N=n, K=k, TILE=TILE, WHOLE=rows.dtype == torch.int8, WEIGHTED=weight is not None,
            TURNS=triton.cdiv(width, k), num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return out

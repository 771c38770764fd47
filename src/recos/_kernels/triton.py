"""Triton kernels: matrix products whose tiles never reach memory.

* ``maxima``: products of queries with rows, of which only the largest of each 64 rows is written.
* ``ratios``: all pairs of rows, the dot product and both bounds in registers at once.

Both factors are read by the bulk copy engine where there is one, and multiplied by the tensor
cores: float16 and bfloat16 with sums in float32, int8 with exact sums.
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
    int8 are multiplied with the scale of the query (n,) and of the tile (tiles,), and left out
    where the weight of a row is 0.
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


@triton.jit
def _ratios(
    x, y, even_x, even_y, odd_x, odd_y, out, bounds, rows, columns, least, near,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DOTS: tl.constexpr, HALVES: tl.constexpr,
    KEEP: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Write the dot product over the bound for its sign; NaN where rounding may spoil it."""
    across = tl.cdiv(columns, N)
    down = tl.cdiv(rows, M)
    pid = tl.program_id(0)
    # Eight blocks of rows go side by side over the columns: what they share stays in the cache.
    first = pid // (8 * across) * 8
    high = tl.minimum(down - first, 8)
    m = (first + pid % (8 * across) % high) * M
    n = pid % (8 * across) // high * N
    dot = tl.zeros((M, N), tl.float32)
    even = tl.zeros((M, N), tl.float32)
    odd = tl.zeros((M, N), tl.float32)
    for k in range(HALVES):
        even = tl.dot(even_x.load([m, k * K]), even_y.load([n, k * K]).T, even)
    for k in range(HALVES):
        odd = tl.dot(odd_x.load([m, k * K]), odd_y.load([n, k * K]).T, odd)
    for k in range(DOTS):
        dot = tl.dot(x.load([m, k * K]), y.load([n, k * K]).T, dot)
    up, down_ = even + odd, even - odd
    bound = tl.abs(tl.where(dot < 0, down_, up))
    other = tl.abs(tl.where(dot < 0, up, down_))
    doubtful = (bound < least) | ((tl.abs(dot) < near) & (other < least))
    ratio = tl.minimum(tl.maximum(dot / tl.maximum(bound, 1e-30), -1.0), 1.0)
    i, j = m + tl.arange(0, M), n + tl.arange(0, N)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    place = i.to(tl.int64)[:, None] * columns + j[None, :]
    tl.store(out + place, tl.where(doubtful, float("nan"), ratio), mask=inside)
    if KEEP:
        tl.store(bounds + place, bound / UNIT, mask=inside)


_SCALE = 64.0  # of unit rows: what their float16 parts leave out is then a normal number


def ratios(left, right, least, near, bounds=None, blocks=(128, 128, 64, 8, 4)):
    """Return float32 recos of rows with rows (see ``_terms.Rows``), NaN where it is doubtful.

    The bounds of unit rows are written to ``bounds`` where it is given.

    Float32 numbers go to the tensor cores as a float16 part and what it leaves out; of the four
    products of two such pairs the smallest is left out.
    """
    m, n, k, warps, stages = blocks
    out = torch.empty((len(left.x), len(right.x)), dtype=torch.float32, device=left.x.device)
    factors = [
        TensorDescriptor.from_tensor(
            _split(part, side, field != "x", right=side is right), [size, k]
        )
        for field in ("x", "even", "odd")
        for side, size, part in ((left, m, getattr(left, field)), (right, n, getattr(right, field)))
    ]
    with torch.cuda.device(out.device):
        _ratios[(triton.cdiv(len(left.x), m) * triton.cdiv(len(right.x), n),)](
            *factors, out, out if bounds is None else bounds, *out.shape,
            least * _SCALE**2, near * _SCALE**2, M=m, N=n, K=k,
            DOTS=triton.cdiv(factors[0].shape[1], k), HALVES=triton.cdiv(factors[2].shape[1], k),
            KEEP=bounds is not None, UNIT=_SCALE**2, num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return out


@triton.jit
def _slopes(
    grad, scores, bounds, of_dot, of_even, of_odd, columns, step_i, step_j, size,
    BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    score = tl.load(scores + at, mask=inside, other=0)
    slope = tl.load(grad + at // columns * step_i + at % columns * step_j, mask=inside, other=0)
    slope = slope.to(tl.float32) / tl.load(bounds + at, mask=inside, other=1)
    half = slope * score * -0.5
    tl.store(of_dot + at, slope, mask=inside)
    tl.store(of_even + at, tl.where(score < 0, -half, half), mask=inside)
    tl.store(of_odd + at, half, mask=inside)


def slopes(grad, scores, bounds, dtype):
    """Return the slopes of the dot product and of the even and the odd part of the bound.

    With s = dot / bound, ds = (d dot - s d bound) / bound; the bound is half the odd part and half
    the even one, which counts negatively where the product is negative.
    """
    found = [torch.empty(scores.shape, dtype=dtype, device=scores.device) for _ in range(3)]
    with torch.cuda.device(scores.device):
        _slopes[(triton.cdiv(scores.numel(), 1024),)](
            grad, scores, bounds, *found, scores.shape[1], *grad.stride(), scores.numel(),
            BLOCK=1024,
        )  # fmt: skip
    return found


def _split(part, side, folded, *, right):
    """Return the float16 parts of a factor side by side, as they meet those of the other."""
    times = _SCALE * (0.5**0.5 if folded else 1.0)
    over = torch.where(side.norm > 0, times / side.norm, 0.0)
    numbers = torch.nn.functional.pad(part, (0, -part.shape[1] % 8)) * over[:, None]
    most = numbers.half()
    rest = (numbers - most.float()).half()
    return torch.cat([most, rest, most] if right else [rest, most, most], dim=1)  # the least first

"""The best of a tile of scores that are known within limits only.

A tile holds dot products q·v of unit queries. Times 1/‖v‖ that is the cosine, up to an error. The
bound over ‖q‖ ‖v‖ is a sum of products of *features* of both sides, up to a product of residuals
(see ``profiles``). So every score has a lower and an upper limit. The k best lower limits of a
query are kept in a heap; the least of them, its floor, is what an upper limit has to reach.
"""

from __future__ import annotations

import numpy as np
from numba import types

from recos._kernels import compiled, part_of_others

_READ1 = types.Array(types.float32, 1, "C", readonly=True)
_READ2 = types.Array(types.float32, 2, "C", readonly=True)
_CHUNK = 64  # pairs that are looked at together before they are looked at one by one


@part_of_others()
def limits(cosine, error, up, down, residual, most):  # type: ignore[no-untyped-def]
    """Return the lower and the upper limit of a score: cosine / bound, not above 1 in size.

    The bound is within ``residual`` of ``up`` where the cosine is positive, else of ``down``, and
    not above ``most``. A row of zeros has no error, and scores 0.
    """
    if cosine == 0 and error == 0:
        return 0.0, 0.0
    low, high = cosine - error, cosine + error
    lower, upper = -1.0, 1.0
    if low > 0:
        lower = low / max(low, min(most, up + residual))
    elif down - residual > -low:
        lower = low / (down - residual)
    if high < 0:
        upper = high / max(-high, min(most, down + residual))
    elif up - residual > high:
        upper = high / (up - residual)
    return lower, upper


@compiled(reorder=True)
def _product(u, v):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(u)):
        total += np.float64(u[j]) * np.float64(v[j])
    return total


@part_of_others()
def _replace_least(heap, value):  # type: ignore[no-untyped-def]
    """Put ``value`` in place of the least number of a heap."""
    at, size = 0, len(heap)
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


@part_of_others()
def _rule_out(dots, over, error, doubt, columns, weights, floor, left):  # type: ignore[no-untyped-def]
    """Write what is left of upper limits above the floor; negative where they do not reach it.

    A score reaches the floor only if ``cosine + error >= floor * bound``, and the least of the
    right side is a weighted sum of the columns.
    """
    size = len(left)
    for j in range(size):
        left[j] = dots[j] * over[j] + (error[j] + doubt)
    for k in range(len(columns)):
        weight, column = weights[k] * floor, columns[k]
        for j in range(size):
            left[j] -= weight * column[j]


@compiled([
    types.void(
        types.Array(types.float32, 2, "C", readonly=True), types.Array(types.float32, 2, "C")
    )
])  # fmt: skip
def first_columns(table, out):  # type: ignore[no-untyped-def]
    """Write the first features of rows, and the residual that goes with these alone."""
    few = len(out) - 1
    for j in range(len(table)):
        for k in range(few):
            out[k, j] = table[j, k]
        rest = 0.0
        for k in range(few, table.shape[1]):
            rest += np.float64(table[j, k]) * np.float64(table[j, k])
        out[few, j] = np.sqrt(rest) * (1 + 2e-7)  # rounded up


@part_of_others()
def _drop_below(rows, uppers, count, floor):  # type: ignore[no-untyped-def]
    kept = 0
    for at in range(count):
        if uppers[at] >= floor:
            rows[kept], uppers[kept] = rows[at], uppers[at]
            kept += 1
    return kept


@compiled([
    types.int64(
        _READ2, types.int64, _READ1, _READ1, _READ1, _READ2, _READ2, _READ1,
        _READ2, types.Array(types.float32, 2, "A", readonly=True), _READ2, _READ2,
        types.int64, types.float64,
        types.Array(types.bool_, 1, "C", readonly=True),
        types.Array(types.int64, 1, "C", readonly=True),
        types.int64,
        types.Array(types.float64, 2, "C"),
        types.Array(types.int64, 2, "C"),
        types.Array(types.float64, 2, "C"),
        types.Array(types.int64, 1, "C"),
        types.Array(types.int64, 1, "C"),
    )
])  # fmt: skip
def sweep(  # type: ignore[no-untyped-def]  # noqa: PLR0912 - one loop
    dots, query, over, error, doubt, unit, tile, near, columns, features, up, down, few, most,
    allowed, own, first, heaps, rows, uppers, counts, again,
):  # fmt: skip
    """Add to the candidates of each query those of a tile that may be among its best.

    Parameters
    ----------
    dots : (queries, tile)
        Dot products of unit queries with rows.
    query : int
        The query to begin with.
    over, error, doubt : (tile,), (tile,), (queries,)
        1/‖v‖, and how far the cosine may be off for the row and for the query.
    unit, tile, near : (queries, d), (tile, d) or (0, d), (tile,)
        The queries and the rows, where products that are not ruled out are to be made again, and
        how far those may be off.
    columns : (few + 1, tile)
        The first features of the rows, and the residual that goes with these alone.
    features : (tile, r + 1)
        All features of the rows, and their residual.
    up, down : (queries, r + 2)
        Features of the queries for positive and negative cosines, their residual, and the residual
        that goes with the first few.
    few, most : int, float
        How many features rule pairs out, and the most that a bound can be.
    allowed : (tile,) or (0,)
        Which rows may be found.
    own : (queries,)
        A row that is not to be found, or -1.
    first : int
        The number of the first row of the tile.
    heaps : (queries, k)
        The best lower limits, in heaps.
    rows, uppers, counts : (queries, room), (queries, room), (queries,)
        The candidates.
    again : (queries,)
        How many products were made again: counted on.

    Returns
    -------
    int
        The query whose room is too small to go on with, or the number of queries.
    """
    size, room, r = len(over), rows.shape[1], features.shape[1] - 1
    left, weights = np.empty(size, np.float32), np.empty(few + 1, np.float32)
    for i in range(query, len(dots)):
        heap, floor = heaps[i], heaps[i, 0]
        if counts[i] + size > room:
            counts[i] = _drop_below(rows[i], uppers[i], counts[i], floor)
            if counts[i] + size > room:
                return i
        if floor > -np.inf:
            side, sign = (up[i], np.float32(-1)) if floor >= 0 else (down[i], np.float32(1))
            for k in range(few):
                weights[k] = side[k]
            weights[few] = sign * side[r + 1]
            _rule_out(dots[i], over, error, doubt[i], columns, weights, np.float32(floor), left)
        else:
            left[:] = 1
        for start in range(0, size, _CHUNK):
            some = left[start : start + _CHUNK]
            passed = np.int32(0)
            for j in range(len(some)):
                passed |= np.int32(some[j] >= 0)
            if not passed:
                continue
            for j in range(start, min(start + _CHUNK, size)):
                if left[j] < 0 or first + j == own[i] or (len(allowed) and not allowed[j]):
                    continue
                over_up = over_down = 0.0
                for k in range(r):
                    over_up += np.float64(up[i, k]) * np.float64(features[j, k])
                    over_down += np.float64(down[i, k]) * np.float64(features[j, k])
                if len(tile):
                    cosine, off = _product(unit[i], tile[j]) * np.float64(over[j]), near[j]
                    again[i] += 1
                else:
                    cosine = np.float64(dots[i, j]) * np.float64(over[j])
                    off = error[j] + doubt[i]
                residual = np.float64(up[i, r]) * np.float64(features[j, r])
                lower, upper = limits(cosine, off, over_up, over_down, residual, most)
                if upper >= heap[0]:
                    rows[i, counts[i]], uppers[i, counts[i]] = first + j, upper
                    counts[i] += 1
                    if lower > heap[0]:
                        _replace_least(heap, lower)
    return len(dots)

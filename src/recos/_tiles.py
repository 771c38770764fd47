"""All pairs as matrix products, cut into tiles.

The columns are prepared once (scaled, sorted, folded), as many at a time as memory allows. Then
each thread takes some rows, prepares them, and meets the columns tile by tile. A tile fits the
cache and is scored before it leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import (
    Array,
    Inputs,
    cast,
    check_finite,
    full_precision,
    is_concrete,
    read,
    replaced,
)
from recos._blocks import Progress, count_threads, parse_memory, run_blocks, spans
from recos._exact import has_gradient, has_ratios
from recos._terms import Doubt, Rows, aligned_exactly, all_pairs, rows, scaled
from recos.metrics import (
    Metric,
    Weights,
    divide,
    doubtful_elsewhere,
    find_metric,
    in_float64,
)


def read_matrices(X: Any, Y: Any, names: tuple[str, str] = ("X", "Y")) -> Inputs:
    given = read(X, Y, names=names)
    for x, name in zip(given.arrays, given.names, strict=True):
        if x.ndim != 2:
            raise ValueError(
                f"{name}: expected a matrix of shape (rows, components), got shape "
                f"{tuple(x.shape)}; a single vector v is the matrix v[None, :]"
            )
    return given


class Grid(NamedTuple):
    """The inputs, and how their pairs are cut.

    ``tile`` rows and twice as many columns make a tile, ``columns`` are prepared at a time, and
    ``rows`` of results are held at a time where not all are. ``most_bytes`` are for pairs over a
    threshold.
    """

    given: Inputs
    metric: Metric
    tile: int
    columns: int
    rows: int
    most_bytes: int

    @property
    def x(self) -> Array:
        return self.given.arrays[0]

    @property
    def y(self) -> Array:
        return self.given.arrays[1]

    def row_blocks(self) -> list[slice]:
        return spans(self.x.shape[0], self.rows)

    def load(self, x: Array, part: Any) -> Array:
        block = cast(self.given.xp, x[part, ...], self.given.dtype)
        return np.ascontiguousarray(block) if self.given.xp is np else block


# A tile this large lets BLAS run at full speed, and its products still fit the cache.
_LARGEST_TILE = 1024
# Rows and columns of a tile that are mended at a time.
_MENDED_ROWS, _MENDED_COLUMNS = 128, 512


def plan(
    X: Any,
    Y: Any,
    metric: str | Metric,
    memory: str | int,
    names: tuple[str, str] = ("X", "Y"),
    *,
    holds_rows: bool = True,
) -> Grid:
    """Check the inputs and choose block sizes that stay within the memory budget.

    A quarter is for the columns prepared, a quarter for results or hits, half for the threads.
    """
    metric, budget = find_metric(metric), parse_memory(memory)
    given = read_matrices(X, X if Y is None else Y, names)
    threads = count_threads() if is_concrete(given.arrays[0]) else 1
    if Y is None:
        given = given._replace(names=("X", "X"))
    m, width = given.arrays[1].shape
    size = 8 if str(given.dtype).endswith("64") else 4
    prepared = 3 * size * width  # of a row: itself, sorted, folded
    tile = _LARGEST_TILE
    while threads * _bytes_of_tile(tile, size, width) > budget // 2 and tile > 1:
        tile //= 2
    columns, rows = budget // 4 // prepared, budget // 4 // (2 * size * max(m, 1))
    rows = rows if holds_rows else max(rows, 1)
    if not (columns and rows):
        raise too_little_memory(4 * max(prepared, 2 * size * m), m, width)
    few = given.xp is np or tile < _LARGEST_TILE
    rows = min(rows, 4 * tile) if few else rows  # kernels of other libraries want many
    return Grid(given, metric, tile, columns, rows, budget // 4)


def too_little_memory(least: int, rows: int, width: int) -> ValueError:
    """Return the error for a budget that not even the smallest blocks fit into."""
    return ValueError(
        f"memory: expected at least {least} bytes for {rows} rows of {width} numbers, got less; "
        "give more, or compare with fewer rows at a time"
    )


def _bytes_of_tile(tile: int, size: int, width: int) -> int:
    """Return what a thread holds: rows prepared, two products, and what mending takes."""
    prepared, products = tile * 3 * size * width, 2 * tile * tile * 2 * size
    mended = min(2 * tile, _MENDED_COLUMNS)
    return prepared + products + mended * (24 * width + 64 * min(tile, _MENDED_ROWS))


def check_rows_finite(grid: Grid) -> None:
    """Raise for the first row with NaN or infinity, before any work is done."""
    xp = grid.given.xp
    for name, x in dict(zip(grid.given.names, grid.given.arrays, strict=True)).items():
        for part in spans(x.shape[0], grid.tile if xp is np else max(1, x.shape[0])):
            block = grid.load(x, part)
            check_finite(xp, scaled(xp, block, block.dtype)[1], name, part.start)


def fill(
    grid: Grid,
    block: slice,
    out: np.ndarray,
    *,
    mirrored: bool = False,
    progress: bool | None = False,
) -> None:
    """Write the scores of a block of rows with all columns to ``out`` (rows, m), contiguous.

    Where they are ``mirrored``, as X is compared with itself, only half of them are computed.
    """
    width, dtype = grid.x.shape[1], out.dtype
    parts = spans(block.stop, min(grid.tile, _share(block.stop - block.start)), block.start)
    # Few rows are met by every thread with its share of the columns, unless X mirrors itself.
    shares = count_threads() if len(parts) < count_threads() and not mirrored else 1
    chunks = spans(grid.y.shape[0], grid.columns)
    steps = Progress(len(chunks) * len(parts) * shares, f"pairwise {grid.metric.name}", progress)
    for some in chunks:
        tiles = spans(some.stop, min(2 * grid.tile, _share(some.stop - some.start, 1)), some.start)
        # One large array has large pages, which cost far less to touch first than many small ones.
        room = np.empty((some.stop - some.start, width), dtype)

        def load_right(columns: slice, room: np.ndarray = room, start: int = some.start) -> Rows:
            return _load_rows(grid, 1, columns, room[columns.start - start : columns.stop - start])

        columns = list(zip(tiles, run_blocks(load_right, tiles), strict=True))
        groups = [columns[start::shares] for start in range(shares)]

        def fill_rows(
            job: tuple[slice, list[tuple[slice, Rows]]], complete: bool = some is chunks[-1]
        ) -> None:
            rows, group = job
            if not group:
                return
            count = rows.stop - rows.start
            target = out[rows.start - block.start : rows.stop - block.start]
            room = np.empty(count * (width + 2 * max(len(right.x) for _, right in group)), dtype)
            left = _load_rows(grid, 0, rows, room[: count * width].reshape(count, width))
            for columns, right in group:
                known = max(0, rows.start - columns.start) if mirrored else 0
                if known < len(right.x):
                    rest = slice(columns.start + known, columns.stop)
                    fresh = right.part(slice(known, None))
                    _score_tile(grid.metric, target, rest, left, fresh, room[count * width :])
            if mirrored and complete:
                square = target[:, rows]
                square[...] = np.triu(square) + np.triu(square, 1).T
                out[rows.stop :, rows] = target[:, rows.stop :].T

        run_blocks(fill_rows, [(part, group) for part in parts for group in groups], steps)


def _share(size: int, pieces: int = 2) -> int:
    """Return how many of ``size`` rows make a piece, so that each thread gets some ``pieces``."""
    return max(128, -(-size // (pieces * count_threads())))


def _load_rows(grid: Grid, side: int, part: slice, room: np.ndarray) -> Rows:
    block = grid.load(grid.given.arrays[side], part)
    loaded = rows(np, block, sorts=grid.metric.sorts, right=side == 1, room=room)
    check_finite(np, loaded.scale, grid.given.names[side], part.start)
    return loaded


def _score_tile(
    metric: Metric, out: np.ndarray, columns: slice, left: Rows, right: Rows, scratch: np.ndarray
) -> None:
    np.matmul(left.x, right.x.T, out=out[:, columns])
    if metric.sorts:
        _divide_by_rearrangement(metric, out, columns, left, right, scratch)
    else:
        _divide_by_norms(metric, out, columns, left, right)


def _divide_by_rearrangement(
    metric: Metric, out: np.ndarray, columns: slice, left: Rows, right: Rows, scratch: np.ndarray
) -> None:
    from recos._kernels import tiles  # noqa: PLC0415 - loads Numba

    shape = (2, len(left.x), len(right.x))
    even, odd = scratch[: math.prod(shape)].reshape(shape)
    np.matmul(left.even, right.even.T, out=even)
    np.matmul(left.odd, right.odd.T, out=odd)
    limits = [out.dtype.type(limit) for limit in Doubt.of(out.dtype, out.dtype)]
    doubtful = tiles.divide_by_rearrangement(
        out, columns.start, even, odd, left.norm, right.norm, *limits
    )
    if doubtful:
        _mend(out[:, columns], left.x, right.x, metric, many=doubtful > even.size // 64)


def _divide_by_norms(
    metric: Metric, out: np.ndarray, columns: slice, left: Rows, right: Rows
) -> None:
    from recos._kernels import tiles  # noqa: PLC0415 - loads Numba

    if metric.weights == Weights(cauchy_schwarz=1):  # the cosine, at half the time
        over = (
            np.divide(1, x.norm, where=x.norm > 0, out=np.zeros_like(x.norm)) for x in (left, right)
        )
        tiles.divide_by_lengths(out, columns.start, *over)
        return
    scales = [left.scale, right.scale]
    weights = [metric.weights.cauchy_schwarz, metric.weights.mean_square, metric.weights.dot]
    tiles.divide_by_norms(
        out,
        columns.start,
        left.norm,
        right.norm,
        *scales,
        *(1 / scale for scale in scales),
        *(out.dtype.type(number) for number in (*weights, metric.range[0])),
    )


def _mend(tile: np.ndarray, x: np.ndarray, y: np.ndarray, metric: Metric, *, many: bool) -> None:
    """Score the NaN pairs again: in float64 if many of float32, else exactly."""
    for columns in spans(len(y), _MENDED_COLUMNS):
        right = None
        if many and tile.dtype == np.float32:
            right = rows(np, y[columns].astype(np.float64), sorts=True, right=True)
        for part in spans(len(x), _MENDED_ROWS):
            some = tile[part, columns]
            doubtful = np.isnan(some)
            if right is not None:
                terms = all_pairs(np, rows(np, x[part].astype(np.float64), sorts=True), right)
                some[...] = divide(np, metric, terms)
                doubtful = Doubt.of(np.float32, np.float64).pairs(np, terms)
            _score_exactly(some, doubtful, x[part], y[columns], metric)


def _score_exactly(
    scores: np.ndarray, doubtful: np.ndarray, x: np.ndarray, y: np.ndarray, metric: Metric
) -> None:
    for i in np.flatnonzero(doubtful.any(axis=1)):
        columns = np.flatnonzero(doubtful[i])
        for part in spans(len(columns), max(1, 2**14 // x.shape[1])):
            j = columns[part]
            scores[i, j] = divide(np, metric, aligned_exactly(x[i : i + 1], y[j]))


def with_gradient(grid: Grid) -> Array | None:
    """Return the scores of all pairs by kernels that know their gradient, where these can."""
    x, y = grid.x, grid.y
    if not has_gradient(grid.metric, x, y, grid.given.dtype):
        return None
    from recos import _training  # noqa: PLC0415 - optional

    return _training.pairwise(*(cast(grid.given.xp, x, grid.given.dtype) for x in (x, y)))


def generic_blocks(grid: Grid) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows and their scores with all columns, on any array library.

    Columns are prepared once if all of them fit into memory, else for each block again.
    """
    xp, metric = grid.given.xp, grid.metric
    chunks = spans(grid.y.shape[0], grid.columns)

    def prepare(chunk: slice) -> Rows:
        return rows(xp, grid.load(grid.y, chunk), sorts=metric.sorts, right=True)

    with full_precision(xp, grid.x):
        kept = prepare(chunks[0]) if len(chunks) == 1 else None
    for block in grid.row_blocks():
        with full_precision(xp, grid.x):
            left = rows(xp, grid.load(grid.x, block), sorts=metric.sorts)
            parts = [_generic_tile(xp, metric, left, kept or prepare(chunk)) for chunk in chunks]
        if parts:
            yield block, parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)


def _generic_tile(xp: Any, metric: Metric, left: Rows, right: Rows) -> Array:
    if has_ratios(metric, left, right):
        return _ratios(xp, metric, left, right)
    terms = all_pairs(xp, left, right)
    scores = divide(xp, metric, terms)
    doubtful = doubtful_elsewhere(xp, terms, scores) if metric.sorts else None
    if doubtful is None:
        return scores
    return _in_float64(xp, metric, left, right, scores, doubtful)


def _ratios(xp: Any, metric: Metric, left: Rows, right: Rows) -> Array:
    """Return scores that a kernel made, doubtful ones computed again."""
    from recos._kernels import triton  # noqa: PLC0415 - optional

    scores = triton.ratios(left, right, *Doubt.of(np.float32, np.float32))
    doubtful = xp.isnan(scores)
    return _in_float64(xp, metric, left, right, scores, doubtful) if xp.any(doubtful) else scores


def _in_float64(
    xp: Any, metric: Metric, left: Rows, right: Rows, scores: Array, doubtful: Array
) -> Array:
    """Return the scores, doubtful ones with terms summed in float64."""
    i, j = xp.nonzero(doubtful)
    found = [
        in_float64(
            xp, metric, xp.take(left.x, i[part], axis=0), xp.take(right.x, j[part], axis=0),
            scores.dtype,
        )
        for part in spans(i.shape[0], max(1, 2**20 // left.x.shape[1]))
    ]  # fmt: skip
    return replaced(xp, scores, doubtful, xp.concat(found))

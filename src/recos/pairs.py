"""Similarities of rows with rows: aligned, all pairs, and all pairs over a threshold.

How the pairs are cut into tiles and computed is in ``_tiles``; how pairs under a threshold are
ruled out is in ``_screen``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recos._arrays import Array, is_plain_on_cuda
from recos._blocks import Progress, spans
from recos._exact import pair_scores
from recos._screen import Hits, find_hits, read_threshold
from recos._tiles import (
    Grid,
    check_rows_finite,
    fill,
    generic_blocks,
    plan,
    read_matrices,
    with_gradient,
)
from recos.metrics import Metric, aligned_scores, find_metric


def paired(
    X: Any, Y: Any, /, *, metric: str | Metric = "recos", progress: bool | None = None
) -> Array:
    """Return the similarity of each row of X with the same row of Y.

    Parameters
    ----------
    X, Y : array, shape (n, d)
        Rows to compare, aligned.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Returns
    -------
    array, shape (n,)
        ``score[i] = metric(X[i], Y[i])``.

    Examples
    --------
    >>> import recos
    >>> recos.paired([[1.0, 2.0], [2.0, 1.0]], [[3.0, 9.0], [-1.0, 0.0]])
    array([ 1., -1.])
    """
    metric = find_metric(metric)
    given = read_matrices(X, Y)
    x, y = given.arrays
    if x.shape[0] != y.shape[0]:
        raise ValueError(
            f"X and Y: expected as many rows in each, got {x.shape[0]} and {y.shape[0]}; "
            "pairwise compares all rows with all rows"
        )
    if metric.sorts and is_plain_on_cuda(given):
        rows = (x.contiguous() for x in given.arrays)
        return given.give_back(pair_scores(metric, *rows, given=given))
    return given.give_back(aligned_scores(metric, given, progress, compiled=True))


def pairwise(
    X: Any,
    Y: Any = None,
    /,
    *,
    metric: str | Metric = "recos",
    memory: str | int = "256MiB",
    out: np.ndarray | None = None,
    progress: bool | None = None,
) -> Array:
    """Return the similarity of every row of X with every row of Y.

    Dot products and both rearrangement bounds are matrix products of sorted rows, folded so that
    the two bounds together cost one: exact recos for all pairs costs two matrix products.

    Parameters
    ----------
    X : array, shape (n, d)
        Rows to compare.
    Y : array, shape (m, d), optional
        Rows to compare with; by default X itself, at half the work.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    memory : str or int
        How much to use beside the inputs and the result, such as ``"256MiB"``.
    out : numpy.ndarray, shape (n, m), optional
        Where to write the result (NumPy inputs only).
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Returns
    -------
    array, shape (n, m)
        ``score[i, j] = metric(X[i], Y[j])``.

    Examples
    --------
    >>> import recos
    >>> recos.pairwise([[1.0, 2.0], [2.0, 1.0]], [[3.0, 9.0], [-1.0, 0.0], [0.0, 0.0]])
    array([[ 1.        , -0.5       ,  0.        ],
           [ 0.71428571, -1.        ,  0.        ]])
    """
    grid = plan(X, Y, metric, memory)
    shape = (grid.x.shape[0], grid.y.shape[0])
    if grid.given.home.xp is not np and out is not None:
        raise ValueError("out: expected None, since only NumPy results can be written in place")
    if grid.given.xp is not np or 0 in shape:  # elsewhere rows are checked as they are loaded
        check_rows_finite(grid)
    if grid.given.xp is not np:
        return grid.given.give_back(_generic_pairwise(grid))
    on_host, dtype = grid.given.home.xp is np, grid.given.dtype
    result = np.empty(shape, grid.given.home.dtype if on_host else dtype)
    result = result if out is None else _checked_out(out, grid, shape, result.dtype)
    if result.dtype == dtype and result.flags.c_contiguous:
        fill(grid, slice(0, shape[0]), result, mirrored=Y is None, progress=progress)
    else:  # the result has another dtype or layout than the blocks it is made of
        blocks = grid.row_blocks()
        steps = Progress(len(blocks), f"pairwise {grid.metric.name}", progress)
        for block in blocks:
            scores = np.empty((block.stop - block.start, shape[1]), dtype)
            fill(grid, block, scores)
            result[block] = scores
            steps.advance()
    return result if on_host else grid.given.give_back(result)


def iter_pairwise(
    X: Any,
    Y: Any = None,
    /,
    *,
    metric: str | Metric = "recos",
    memory: str | int = "256MiB",
) -> Iterator[Array]:
    """Yield the rows of `pairwise` in consecutive blocks that fit into ``memory``.

    Parameters
    ----------
    X : array, shape (n, d)
        Rows to compare.
    Y : array, shape (m, d), optional
        Rows to compare with; by default X itself.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    memory : str or int
        How much to use beside the inputs, the block just yielded included.

    Yields
    ------
    array, shape (rows, m)
        The next rows of the result. A block is never overwritten by a later one.

    Examples
    --------
    >>> import recos
    >>> X = [[1.0, 2.0], [2.0, 1.0], [3.0, 9.0]]
    >>> for block in recos.iter_pairwise(X, metric="cos"):
    ...     print(block.argsort(axis=1)[:, -2])  # the nearest row other than itself
    [2 0 0]
    """
    grid = plan(X, Y, metric, memory)
    check_rows_finite(grid)
    return _iterate(grid)


def _iterate(grid: Grid) -> Iterator[Array]:
    given = grid.given
    if given.xp is not np:
        yield from (given.give_back(scores) for _, scores in generic_blocks(grid))
        return
    for block in grid.row_blocks():
        scores = np.empty((block.stop - block.start, grid.y.shape[0]), given.dtype)
        fill(grid, block, scores)
        yield given.give_back(scores)


def above(
    X: Any,
    Y: Any = None,
    /,
    *,
    threshold: float,
    metric: str | Metric = "recos",
    memory: str | int = "256MiB",
    progress: bool | None = None,
) -> Iterator[tuple[int, int, float]]:
    """Yield every pair of rows whose similarity reaches a threshold.

    One matrix product screens all pairs: a bound on the similarity, made of the norms or of the
    sorted profiles of both rows, rides along in two more columns. Only the pairs that may reach
    the threshold are scored, exactly as `paired` scores them. For float32 and float16 rows that is
    in float64, rounded to float32, and the rounded score is what is compared with the threshold.

    Parameters
    ----------
    X : array, shape (n, d)
        Rows to compare.
    Y : array, shape (m, d), optional
        Rows to compare with; by default X itself, and then each pair comes once, with i < j.
    threshold : float
        The least similarity to report.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    memory : str or int
        How much to use beside the inputs.
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Yields
    ------
    tuple of (int, int, float)
        ``(i, j, score)`` with ``score = metric(X[i], Y[j]) >= threshold``, ordered by i, then j.

    Examples
    --------
    >>> import recos
    >>> X = [[1.0, 5.5, 2.0, 4.0], [2.0, 5.5, 1.0, 4.0], [1.0, 8.5, 2.0, 4.0]]
    >>> list(recos.above(X, threshold=0.99))
    [(0, 2, 1.0)]
    """
    grid, threshold = plan(X, Y, metric, memory, holds_rows=False), read_threshold(threshold)
    check_rows_finite(grid)
    return _one_by_one(find_hits(grid, threshold, upper=Y is None, progress=progress))


def _one_by_one(hits: Iterator[Hits]) -> Iterator[tuple[int, int, float]]:
    for found in hits:
        order = np.lexsort((found.j, found.i))
        for part in spans(len(order), 512):  # Python numbers take several times the room
            picked = order[part]
            yield from zip(
                found.i[picked].tolist(),
                found.j[picked].tolist(),
                found.scores[picked].tolist(),
                strict=True,
            )


def _checked_out(out: Any, grid: Grid, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"{getattr(out, 'shape', type(out).__name__)} of {getattr(out, 'dtype', 'no dtype')}"
        raise ValueError(f"out: expected a numpy array of shape {shape} of {dtype}, got {got}")
    if not out.flags.writeable:
        raise ValueError("out: expected a writable array, got a read-only one")
    if any(np.may_share_memory(out, x) for x in (grid.x, grid.y)):
        raise ValueError("out: expected memory of its own, got that of an input; copy one of them")
    return out


def _generic_pairwise(grid: Grid) -> Array:
    scores = with_gradient(grid)
    if scores is not None:
        return scores
    blocks = [scores for _, scores in generic_blocks(grid)]
    if not blocks:
        shape = grid.x.shape[0], grid.y.shape[0]
        return grid.given.xp.zeros(shape, dtype=grid.given.dtype, device=grid.given.home.device)
    return blocks[0] if len(blocks) == 1 else grid.given.xp.concat(blocks, axis=0)

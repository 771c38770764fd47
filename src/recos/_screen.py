"""All pairs over a threshold, most of them ruled out by one matrix product.

For unit rows the dot product is the cosine c, and a pair reaches the threshold t only if
``c >= t * (bound / (‖u‖ ‖v‖))``. A lower bound of the right side is the product of two numbers of
u with two numbers of v, so it rides along as two more columns of the same product:

* norms: ``½ (r + 1/r)`` with ``r = ‖u‖/‖v‖`` is ``½ ‖u‖ · 1/‖v‖ + ½ 1/‖u‖ · ‖v‖``;
* sorted profiles: with α the cosine of u↑ and the mean profile, and ρ = √(1 - α²),
  ``u↑ · v↑ >= (α α' - ρ ρ') ‖u‖ ‖v‖``.

The product is made in float32. Its rounding is part of the bound, and whatever passes is scored
exactly as aligned rows are, so the result does not depend on how the pairs were cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, to_numpy
from recos._blocks import Progress, run_blocks, spans
from recos._terms import rows
from recos._tiles import Grid, generic_blocks, too_little_memory
from recos.metrics import score_rows

_SAMPLE = 256  # rows that the mean profile is taken from
_MOST_NUMBERS = 2**15  # numbers of each side scored exactly at a time
_HIT = 64  # bytes: two indices and a score, and as much again while hits are joined and ordered
_MOST_PAIRS = 2**16  # pairs that passed the screen, taken at a time


class Hits(NamedTuple):
    """Pairs over the threshold, in no order."""

    i: np.ndarray
    j: np.ndarray
    scores: np.ndarray


class _TooManyHitsError(Exception):
    """More pairs pass in one block of rows than memory allows to hold."""


class _Screen(NamedTuple):
    """The extra columns of both sides, and the least product of a pair that may reach.

    Those of the left are made for a block of rows at a time.
    """

    left: Callable[[slice], np.ndarray]
    right: np.ndarray
    least: float


def read_threshold(threshold: Any) -> float:
    """Return a threshold as a number."""
    if isinstance(threshold, bool) or not isinstance(
        threshold, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"threshold: expected a number, got {threshold!r}")
    if not math.isfinite(threshold):
        raise ValueError(f"threshold: expected a finite number, got {threshold!r}")
    return float(threshold)


def find_hits(
    grid: Grid, threshold: float, *, upper: bool, progress: bool | None
) -> Iterator[Hits]:
    """Yield the pairs over the threshold block by block; the rows of blocks ascend."""
    on_host = grid.given.xp is np
    if not grid.y.shape[0] or threshold > 1:  # no similarity is larger than 1
        return
    threshold = _least_reaching(grid, threshold)
    blocks = spans(grid.x.shape[0], 4 * grid.tile) if on_host else grid.row_blocks()
    steps = Progress(len(blocks), f"above {grid.metric.name}", progress)
    if not on_host:
        for block, scores in generic_blocks(grid):
            yield _compared(grid, threshold, block, scores, upper=upper)
            steps.advance()
        return
    screen = _screen(grid, threshold)
    for block in blocks:
        yield from _split_until_it_fits(grid, screen, threshold, block, upper=upper)
        steps.advance()


def _compared(grid: Grid, threshold: float, block: slice, scores: Array, *, upper: bool) -> Hits:
    """Return the hits among the scores of a block, on any array library."""
    i, j = (to_numpy(index) for index in grid.given.xp.nonzero(scores >= threshold))
    return _kept(Hits(i + block.start, j, to_numpy(scores)[i, j]), upper=upper)


def _kept(hits: Hits, *, upper: bool) -> Hits:
    return Hits(*(field[hits.i < hits.j] for field in hits)) if upper else hits


def _split_until_it_fits(
    grid: Grid, screen: _Screen, threshold: float, block: slice, *, upper: bool
) -> Iterator[Hits]:
    try:
        hits = _screened(grid, screen, threshold, block, upper=upper)
    except _TooManyHitsError:
        middle = (block.start + block.stop) // 2
        for half in (slice(block.start, middle), slice(middle, block.stop)):
            yield from _split_until_it_fits(grid, screen, threshold, half, upper=upper)
    else:
        yield hits


def _screened(grid: Grid, screen: _Screen, threshold: float, block: slice, *, upper: bool) -> Hits:
    """Return the hits of a block: screened by a product, then scored exactly."""
    left = _unit_rows(grid, grid.x, block, screen.left(block))
    counts: list[int] = []

    def find(columns: slice) -> list[Hits]:
        found = []
        right = _unit_rows(grid, grid.y, columns, screen.right[columns])
        for part in spans(len(left), grid.tile):
            passed = np.flatnonzero(left[part] @ right.T >= screen.least)
            for some in spans(len(passed), _MOST_PAIRS):
                i, j = np.divmod(passed[some], len(right))
                pairs = Hits(i + (block.start + part.start), j + columns.start, i)
                hits = _score(grid, threshold, _kept(pairs, upper=upper))
                found.append(hits)
                counts.append(len(hits.i))
                if sum(counts) * _HIT > grid.most_bytes and len(left) > 1:
                    raise _TooManyHitsError
        return found

    tiles = run_blocks(find, spans(grid.y.shape[0], grid.tile, block.start if upper else 0))
    found = [hits for tile in tiles for hits in tile]
    if not found:
        return Hits(np.empty(0, int), np.empty(0, int), np.empty(0))
    return Hits(*(np.concatenate(fields) for fields in zip(*found, strict=True)))


def _score(grid: Grid, threshold: float, pairs: Hits) -> Hits:
    """Return those of the pairs that reach the threshold, with their exact scores."""
    scores = np.empty(len(pairs.i), _score_dtype(grid))
    for part in spans(len(scores), max(1, min(grid.tile // 2, _MOST_NUMBERS // grid.x.shape[1]))):
        u, v = grid.load(grid.x, pairs.i[part]), grid.load(grid.y, pairs.j[part])
        scores[part] = score_rows(grid.metric, grid.given, u, v, compiled=True)
    reached = scores >= threshold
    return Hits(pairs.i[reached], pairs.j[reached], scores[reached])


def _least_reaching(grid: Grid, threshold: float) -> float:
    """Return the least score that reaches the threshold, so that rounding it changes no hit."""
    least = _score_dtype(grid).type(threshold)
    with np.errstate(over="ignore"):
        return float(least if least >= np.float64(threshold) else np.nextafter(least, np.inf))


def _score_dtype(grid: Grid) -> np.dtype:
    """Return the dtype in which scores are compared: never less than float32."""
    wide = grid.given.xp.finfo(grid.given.dtype).bits == 64
    return np.dtype(np.float64 if wide else np.float32)


def _unit_rows(grid: Grid, x: Array, part: slice, columns: np.ndarray) -> np.ndarray:
    """Return rows of norm 1 with their extra columns, in float32."""
    block = rows(np, grid.load(x, part), sorts=False)
    unit = np.empty((len(block.x), block.x.shape[1] + columns.shape[1]), np.float32)
    np.divide(block.x, _or_one(block.norm)[:, None], out=unit[:, : block.x.shape[1]])
    unit[:, block.x.shape[1] :] = columns
    return unit


def _or_one(norm: np.ndarray) -> np.ndarray:
    safe: np.ndarray = np.where(norm == 0, norm.dtype.type(1), norm)
    return safe


def _screen(grid: Grid, threshold: float) -> _Screen:
    """Compute the extra columns, and how far rounding can lower a product that should reach 0.

    Up to a threshold of 0 nothing is ruled out.
    """
    metric, weights, everything = grid.metric, grid.metric.weights, slice(0, grid.y.shape[0])
    if 8 * everything.stop > grid.most_bytes:
        raise too_little_memory(32 * everything.stop, *grid.y.shape)
    if metric.sorts:
        profile, sides = _mean_profile(grid), np.array([-threshold, threshold], np.float32)
        right = _profile_columns(grid, grid.y, everything, profile)

        def left(block: slice) -> np.ndarray:
            return _profile_columns(grid, grid.x, block, profile) * sides
    else:
        factor = threshold * (weights.cauchy_schwarz + weights.mean_square)
        factor /= 1 - threshold * weights.dot if threshold > 0 else 1
        norms = _norms(grid, grid.y, everything)
        middle = float(np.median(norms[norms > 0])) if (norms > 0).any() else 1.0
        right = _norm_columns(norms, middle)[:, ::-1]

        def left(block: slice) -> np.ndarray:
            return _norm_columns(_norms(grid, grid.x, block), middle) * np.float32(-factor / 2)

    # Twice the worst case of a float32 sum; the extra products are at most about as large as c.
    slack = 4 * (grid.x.shape[1] + 16) * float(np.finfo(np.float32).eps)
    slack += float(np.finfo(_score_dtype(grid)).eps)  # a score may round up to the threshold
    return _Screen(left, right, -slack * max(1.0, threshold) if threshold > 0 else -np.inf)


def _mean_profile(grid: Grid) -> np.ndarray:
    step = max(1, grid.y.shape[0] // _SAMPLE)
    sample = rows(np, grid.load(grid.y, slice(None, None, step)), sorts=False)
    units = np.sort(sample.x / _or_one(sample.norm)[:, None], axis=1)
    profile: np.ndarray = units.astype(np.float64).mean(axis=0)
    length = np.linalg.norm(profile)
    return profile / length if length else profile


def _profile_columns(grid: Grid, x: Array, some: slice, profile: np.ndarray) -> np.ndarray:
    """Return α and ρ of each row: its share of the mean profile, and the length of the rest."""
    columns = np.empty((some.stop - some.start, 2), np.float32)

    def fill(part: slice) -> None:
        block = rows(np, grid.load(x, part), sorts=False)
        unit = np.sort(block.x, axis=1).astype(np.float64)
        unit /= _or_one(np.linalg.norm(unit, axis=1))[:, None]
        share = unit @ profile
        rest = np.linalg.norm(unit - share[:, None] * profile, axis=1)
        columns[part.start - some.start : part.stop - some.start] = np.stack([share, rest], axis=1)

    run_blocks(fill, spans(some.stop, grid.tile, some.start))
    return columns


def _norms(grid: Grid, x: Array, some: slice) -> np.ndarray:
    """Return the norms of some rows, all 1 where length does not matter."""
    found = np.ones(some.stop - some.start, np.float32 if grid.metric.scale_invariant else float)
    if grid.metric.scale_invariant:
        return found

    def fill(part: slice) -> None:
        block = rows(np, grid.load(x, part), sorts=False)
        with np.errstate(over="ignore"):
            norms = block.norm.astype(np.float64) * block.scale
        found[part.start - some.start : part.stop - some.start] = norms

    run_blocks(fill, spans(some.stop, grid.tile, some.start))
    return found


def _norm_columns(found: np.ndarray, middle: float) -> np.ndarray:
    """Return norms and their reciprocals.

    Clipped to what float32 can multiply, two norms come closer to each other, never further apart,
    so the bound made of them only becomes more generous.
    """
    with np.errstate(over="ignore"):
        clipped = np.clip(found / middle, 2.0**-60, 2.0**60)
    return np.stack([clipped, 1 / clipped], axis=1).astype(np.float32)

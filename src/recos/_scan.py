"""Exact top k of rows whose features are known: one matrix product, limits, and a few exact scores.

The product of the queries with the rows as they lie, in float32, is made tile by tile. A compiled
loop turns it into limits of the score and keeps the rows that may be among the k best of a query
(``_kernels/select``). Nothing that may is lost: the limits include the rounding of the product.
What is kept is scored in float64. Parts of the rows and of the queries go to different threads, and
the best of the parts are merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recos._blocks import Progress, count_threads, run_blocks, spans
from recos._stores import (
    Store,
    encode,
    errors_of_codes,
    multiply_codes,
    worth_coding,
)
from recos.metrics import Metric, exact_scores
from recos.profiles import Features, Norms, Profiles

_QUERIES = 512  # that a thread takes at a time, at most
_GROUP = 64  # queries that it takes where there is room for tiles of _FIRST rows beside them
_PRODUCTS = 2**19  # numbers of a tile of products, which then stays in the cache
_TILE = 1024, 2**14  # rows of a tile, at least and at most
_FIRST = 256  # rows of the first tile, which nothing is ruled out of
_CLOSE = 0.003  # how much more of the square of the residual a few features may leave than all
# How many products are made again of each query, at first and for each row, before float32 products
# would have been faster.
_START, _AGAIN = 1024, 0.02
_SCORED = 2**17  # numbers of each side that are scored at a time
_LISTED = 2**15  # candidates that are scored and ordered at a time
_MERGED = 2**15  # results that are merged at a time


class Found(NamedTuple):
    """The best rows of each query in float64, missing ones -1 with a score of -inf, and the work.

    ``scored`` is how many rows were scored exactly for each query.
    """

    scores: np.ndarray
    indices: np.ndarray
    scored: np.ndarray

    @classmethod
    def none(cls, queries: int, k: int) -> Found:
        """Return room for what is to be found."""
        empty = np.full((queries, k), -np.inf), np.full((queries, k), -1)
        return cls(*empty, np.zeros(queries, np.int64))


class Corpus(NamedTuple):
    """Rows to search, what is known of each, and which may be found.

    The first ``few`` features tell nearly all. ``allowed`` has no length where all may be found.
    """

    store: Store
    shape: Profiles | Norms
    features: Features
    few: int
    allowed: np.ndarray


def make_corpus(
    store: Store, shape: Profiles | Norms, features: Features, allowed: np.ndarray | None = None
) -> Corpus:
    """Return rows ready to be searched; the fewest features that tell nearly all come first."""
    some = Features(*(x[:: max(1, len(x) // 4096)] for x in features))
    known = np.isfinite(some.error)
    with np.errstate(over="ignore", invalid="ignore"):  # a damaged file is for verify to find
        spread = [
            np.mean(some.residual(few)[known] ** 2.0) if known.any() else 0.0
            for few in range(shape.rank + 1)
        ]
    enough = [few for few in range(1, shape.rank) if spread[few] <= spread[-1] + _CLOSE]
    few = min([*enough, shape.rank])
    return Corpus(store, shape, features, few, np.zeros(0, bool) if allowed is None else allowed)


def search(
    metric: Metric,
    queries: np.ndarray,
    corpus: Corpus,
    k: int,
    own: np.ndarray | None = None,
    *,
    memory: int,
    progress: bool | None = None,
) -> Found:
    """Return the k best rows for each query; row ``own[i]`` is not to be found for query i.

    Memory is in bytes, and what the threads may hold.
    """
    size, threads = len(corpus.features.over), count_threads()
    groups, tile = _plan(len(queries), size, queries.shape[1], k, memory // threads)
    shares = spans(size, max(_FIRST, -(-size // -(-threads // len(groups)))))
    jobs = [(group, share) for group in groups for share in shares]
    best, alone = Found.none(len(queries), k), len(shares) == 1

    def put(group: slice, found: Found) -> None:
        for whole, part in zip(best, found, strict=True):
            whole[group] = part

    def work(job: tuple[slice, slice]) -> Found | None:
        group, share = job
        mine = np.full(len(queries[group]), -1) if own is None else own[group]
        some = np.ascontiguousarray(queries[group])
        found = _best(metric, some, corpus, k, mine, share, tile)
        if not alone:
            return found
        put(group, found)
        return None

    found = run_blocks(work, jobs, Progress(len(jobs), f"search {metric.name}", progress))
    if not alone:
        parts = [part for part in found if part is not None]
        for at, group in enumerate(groups):
            put(group, merge(parts[at * len(shares) : (at + 1) * len(shares)], k))
    return best


def _plan(queries: int, size: int, width: int, k: int, memory: int) -> tuple[list[slice], int]:
    """Return groups of queries, and how many rows make a tile.

    Groups are kept large while tiles can become smaller: what is done once for a tile costs little
    beside its products, and products of few queries at a time cost far more each.
    """
    group, half = max(1, min(_QUERIES, -(-queries // count_threads()))), memory // 2

    def fits(least: int) -> bool:
        # Of a query: itself in three kinds, products, candidates; of a row: itself as float32.
        tile = max(min(least, size), k)
        return group * (24 * width + 36 * tile) + 4 * width * tile <= half

    while group > _GROUP and not fits(_TILE[0]):
        group = max(_GROUP, group // 2)
    while group > 1 and not fits(_FIRST):
        group //= 2
    room = (half - 24 * width * group) // (36 * group + 4 * width)
    tile = min(max(_PRODUCTS // group, _TILE[0]), _TILE[1], room)
    return spans(queries, group), max(k, 16, tile)


def merge(parts: list[Found], k: int) -> Found:
    """Return the best of what was found in parts of the rows."""
    if len(parts) == 1:
        return parts[0]
    best = Found.none(len(parts[0].scores), k)
    best.scored[:] = np.sum([part.scored for part in parts], axis=0)
    for some in spans(len(best.scores), max(1, _MERGED // k)):
        scores, indices = (np.hstack([part[field][some] for part in parts]) for field in (0, 1))
        order = np.lexsort((indices, -scores), axis=1)[:, :k]
        best.scores[some] = np.take_along_axis(scores, order, axis=1)
        best.indices[some] = np.take_along_axis(indices, order, axis=1)
    return best


class _Queries(NamedTuple):
    """Unit queries, and what the features of rows are multiplied with."""

    rows: np.ndarray
    up: np.ndarray
    down: np.ndarray


def _prepare(queries: np.ndarray, corpus: Corpus) -> _Queries:
    features = corpus.shape.transform(queries)
    wide = queries.astype(np.float64)
    wide /= np.maximum(np.abs(wide).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    norm = np.sqrt(np.vecdot(wide, wide))[:, None]
    unit = np.divide(wide, norm, where=norm > 0, out=wide).astype(np.float32)
    sides = (
        np.hstack([side, features._replace(table=side).residual(corpus.few)[:, None]])
        for side in corpus.shape.as_queries(features)
    )
    return _Queries(unit, *(np.ascontiguousarray(side) for side in sides))


def _best(
    metric: Metric,
    queries: np.ndarray,
    corpus: Corpus,
    k: int,
    own: np.ndarray,
    share: slice,
    size: int,
) -> Found:
    """Return the k best of some rows for each query.

    Where more may be among them than there is room for, these are scored and the k best kept: the
    least of their scores is then what others have to reach.
    """
    from recos._kernels import select  # noqa: PLC0415 - loads Numba

    unit, up, down = _prepare(queries, corpus)
    most, few = corpus.shape.most, corpus.few
    size = min(size, share.stop - share.start)
    heaps, counts = np.full((len(unit), k), -np.inf), np.zeros(len(unit), np.int64)
    rows: np.ndarray = np.empty((len(unit), 2 * size), np.int64)
    uppers: np.ndarray = np.empty((len(unit), 2 * size))
    products = np.empty(len(unit) * size, np.float32)
    scored, again = np.zeros(len(unit), np.int64), np.zeros(len(unit), np.int64)
    coded = encode(unit) if worth_coding(len(unit)) else None
    start = min(share.start + min(_FIRST, size), share.stop)
    for part in [slice(share.start, start), *spans(share.stop, size, start)]:
        dots = products[: len(unit) * (part.stop - part.start)].reshape(len(unit), -1)
        over, near, table = (field[part] for field in corpus.features)
        error, doubt, tile = near, np.zeros(len(unit), np.float32), unit[:0]
        if coded is None:
            corpus.store.multiply(unit, part, dots)
        else:
            some_coded = corpus.store.coded(part)
            multiply_codes(coded, some_coded, dots)
            error, doubt = errors_of_codes(coded, some_coded, over, near)
            numbers = corpus.store.numbers(part)
            tile = unit[:0] if numbers is None else numbers
            if again.mean() > _START + _AGAIN * (part.start - share.start):
                coded = None  # the rows are not alike enough to their codes
        if np.isinf(error).any():
            dots[:, np.isinf(error)] = 0  # not a number where they overflow
        columns = np.empty((few + 1, part.stop - part.start), np.float32)
        select.first_columns(table, columns)
        done = 0
        while True:
            done = select.sweep(
                dots, done, over, error, doubt, unit, tile, near, columns, table, up, down, few,
                most, corpus.allowed[part], own, part.start, heaps, rows, uppers, counts, again,
            )  # fmt: skip
            if done == len(unit):
                break
            some = rows[done, : counts[done]]
            best = _scored(metric, queries[done : done + 1], corpus, k, [some])
            limits = best.scores[0] / (1 - metric.weights.dot * best.scores[0])  # without the dot
            rows[done, :k], uppers[done, :k] = best.indices[0], limits
            heaps[done], counts[done] = limits[::-1], k
            scored[done] += best.scored[0]
    found = Found.none(len(unit), k)._replace(scored=scored)
    step = len(unit) if counts.sum() <= _LISTED else max(1, _LISTED // int(counts.max()))
    for part in spans(len(unit), step):
        listed = zip(rows[part], uppers[part], counts[part], heaps[part], strict=True)
        lists = [row[:count][upper[:count] >= heap[0]] for row, upper, count, heap in listed]
        best = _scored(metric, queries[part], corpus, k, lists)
        found.scores[part], found.indices[part] = best.scores, best.indices
        found.scored[part] += best.scored
    return found


def _scored(
    metric: Metric, queries: np.ndarray, corpus: Corpus, k: int, lists: list[np.ndarray]
) -> Found:
    """Return the k best candidates of each query."""
    scored = np.array([len(rows) for rows in lists])
    query, row = np.repeat(np.arange(len(lists)), scored), np.concatenate(lists)
    scores = np.empty(len(row))
    for part in spans(len(row), max(1, _SCORED // queries.shape[1])):
        pair = queries[query[part]], corpus.store.exact(row[part])
        wide = np.result_type(*pair)
        scores[part] = exact_scores(metric, *(x.astype(wide, copy=False) for x in pair))
    order = np.lexsort((row, -scores, query))
    place = np.arange(len(row)) - np.repeat(np.cumsum(scored) - scored, scored)
    kept = order[place < k]
    best = Found.none(len(lists), k)._replace(scored=scored)
    best.scores[query[kept], place[place < k]] = scores[kept]
    best.indices[query[kept], place[place < k]] = row[kept]
    return best

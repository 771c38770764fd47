"""The best rows for each query: exact top k, re-ranking, ranges and pairs.

``topk`` screens all rows with one matrix product and certified limits (``_scan``), then scores the
few that may be among the best in float64. The result is that of scoring everything in float64,
ordered by score, then by index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recos import _device
from recos._arrays import Array, Inputs, is_plain_on_cuda, on_host, read, to_numpy
from recos._blocks import parse_memory, spans
from recos._exact import pair_scores
from recos._scan import Found, make_corpus, merge, search
from recos._screen import find_hits, read_threshold
from recos._stores import Plain
from recos._tiles import check_rows_finite, plan, read_matrices
from recos.metrics import Metric, exact_scores, find_metric
from recos.profiles import describe, fit

_SCORED = 2**19  # numbers of each side that are scored at a time
_PAIR = 128  # bytes that a pair takes until it is ordered


class TopK(NamedTuple):
    """The best rows for each query, best first; equal scores in order of their indices.

    Attributes
    ----------
    scores : array, shape (queries, k)
        Similarities, descending.
    indices : array of int64, shape (queries, k)
        Row numbers.
    """

    scores: Array
    indices: Array


class Pairs(NamedTuple):
    """Pairs of rows and their similarities.

    Attributes
    ----------
    i, j : array of int64, shape (n,)
        Row numbers: tensors where the inputs are on a CUDA device, else NumPy arrays.
    scores : array, shape (n,)
        Similarities.
    """

    i: Array
    j: Array
    scores: Array


def topk(
    queries: Any,
    corpus: Any,
    k: int = 10,
    /,
    *,
    metric: str | Metric = "recos",
    where: Any = None,
    exclude_self: bool = False,
    memory: str | int = "256MiB",
    progress: bool | None = None,
) -> TopK:
    """Return the k most similar rows of a corpus for each query, exactly.

    Parameters
    ----------
    queries : array, shape (n, d)
        Rows to find others for.
    corpus : array, shape (m, d)
        Rows to search. To search them again and again, make an `Index`.
    k : int
        How many to find; fewer are returned where there are fewer.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    where : array of bool, shape (m,), or of int, optional
        Which rows may be found: a mask, or row numbers.
    exclude_self : bool
        Whether queries are the rows of the corpus, and must not find themselves.
    memory : str or int
        How much to use beside the inputs and the result, such as ``"256MiB"``.
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Returns
    -------
    TopK
        Named tuple (scores, indices) of arrays of shape (n, k). Scores have the array kind and
        floating family of the inputs; they were compared in float64. Where a query may find fewer
        rows than others, because a filter passes it and it must not find itself, indices are -1
        and scores -inf at the end.

    Examples
    --------
    >>> import recos
    >>> corpus = [[1.0, 8.5, 2.0, 4.0], [2.0, 5.5, 1.0, 4.0], [-1.0, -2.0, -1.0, 0.0]]
    >>> scores, indices = recos.topk([[1.0, 5.5, 2.0, 4.0]], corpus, 2)
    >>> indices
    array([[0, 1]])
    """
    metric, budget = find_metric(metric), parse_memory(memory)
    given = read_matrices(queries, corpus, names=("queries", "corpus"))
    on_cuda = is_plain_on_cuda(given)
    given = given if on_cuda else on_host(given)
    rows, stored = given.arrays
    allowed = read_where(where, len(stored))
    if exclude_self and len(rows) != len(stored):
        raise ValueError(
            f"exclude_self: expected as many queries as corpus rows, since query i is row i; got "
            f"{len(rows)} and {len(stored)}"
        )
    most = len(stored) if allowed is None else int(allowed.sum())
    # Where all rows may be found, each query finds all but itself.
    k = min(read_k(k), max(0, most - (exclude_self and most == len(stored))))
    own = np.arange(len(rows)) if exclude_self else None
    if on_cuda:
        found = _find_on_device(given, k, metric, allowed, own, budget)
        return TopK(given.give_back(found.scores), found.indices)
    check_finite_rows(rows, given.names[0])
    return give_back(given, _find(given, rows, k, metric, allowed, own, budget, progress))


def _find(
    given: Inputs,
    rows: np.ndarray,
    k: int,
    metric: Metric,
    allowed: np.ndarray | None,
    own: np.ndarray | None,
    budget: int,
    progress: bool | None,
) -> Found:
    """Return the k best rows of the corpus for each of some queries."""
    stored, name = given.arrays[1], given.names[1]
    if not (k and len(rows)):
        return Found.none(len(rows), k)
    shape = fit(metric, stored)
    rows = np.ascontiguousarray(rows, given.dtype)
    # A quarter for what is known of rows, the rest for what the threads hold of queries and tiles.
    section = max(2 * k, 1024, budget // 4 // (8 * (shape.rank + 4)))
    found: list[Found] = []
    for part in spans(len(stored), section):
        features = describe(shape, stored[part], given.dtype, name=name, first=part.start)
        store = Plain(stored[part], given.dtype)
        some = make_corpus(store, shape, features, None if allowed is None else allowed[part])
        mine = None if own is None else own - part.start
        best = search(metric, rows, some, k, mine, memory=budget // 2, progress=progress)
        best.indices[best.indices >= 0] += part.start
        found = [merge([*found, best], k)]
    return found[0]


def _find_on_device(
    given: Inputs,
    k: int,
    metric: Metric,
    allowed: np.ndarray | None,
    own: np.ndarray | None,
    budget: int,
) -> TopK:
    """Return the k best, scored in float64, on the device of the inputs."""
    xp, (rows, stored), device = given.xp, given.arrays, given.home.device
    _device.check_finite_rows(rows, given.names[0])
    if not (k and len(rows)):
        scores = xp.full((len(rows), k), -xp.inf, dtype=xp.float64, device=device)
        return TopK(scores, xp.full((len(rows), k), -1, dtype=xp.int64, device=device))
    found = _device.search_rows(
        metric,
        rows.contiguous(),
        stored,
        k,
        None if own is None else xp.asarray(own, device=device),
        None if allowed is None else xp.asarray(allowed, device=device),
        memory=budget,
        name=given.names[1],
    )
    return TopK(found.scores, found.indices)


def rerank(
    queries: Any,
    vectors: Any,
    /,
    *,
    candidates: Any = None,
    k: int | None = None,
    metric: str | Metric = "recos",
) -> TopK:
    """Order candidates that another engine proposed by their exact similarity.

    Parameters
    ----------
    queries : array, shape (n, d)
        Rows that candidates were proposed for.
    vectors : array, shape (m, d) or (n, c, d)
        The rows that candidates number, or the candidates of each query themselves.
    candidates : array of int, shape (n, c), optional
        Row numbers, -1 where there is none. A row that comes twice counts once. By default all rows
        are candidates.
    k : int, optional
        How many to keep; by default all.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.

    Returns
    -------
    TopK
        Named tuple (scores, indices), best first. Indices are row numbers, or places among the
        candidates where ``vectors`` are these; where candidates are missing, they are -1 and the
        scores -inf, at the end.

    Examples
    --------
    >>> import recos
    >>> vectors = [[1.0, 8.5, 2.0, 4.0], [2.0, 5.5, 1.0, 4.0], [-1.0, -2.0, -1.0, 0.0]]
    >>> recos.rerank([[1.0, 5.5, 2.0, 4.0]], vectors, candidates=[[2, 1, 0, -1]], k=2).indices
    array([[0, 1]])
    """
    metric = find_metric(metric)
    given = read(queries, vectors, names=("queries", "vectors"))
    on_cuda = is_plain_on_cuda(given)
    given = given if on_cuda else on_host(given)
    rows, stored = given.arrays
    for_each = stored.ndim == 3
    if rows.ndim != 2 or stored.ndim not in (2, 3) or (for_each and len(stored) != len(rows)):
        raise ValueError(
            "queries and vectors: expected shapes (n, d) and (m, d) or (n, c, d), got "
            f"{tuple(rows.shape)} and {tuple(stored.shape)}"
        )
    count = stored.shape[-2]
    which = _read_candidates(candidates, len(rows), count)
    k = which.shape[1] if k is None else min(read_k(k), which.shape[1])
    if on_cuda:
        return _rerank_on_device(given, which, k, metric)
    scores = np.full(which.shape, -np.inf)
    query, place = np.nonzero(which >= 0)
    row = which[query, place]
    for part in spans(len(row), max(1, _SCORED // rows.shape[1])):
        picked = (query[part], row[part]) if for_each else row[part]
        pair = [np.ascontiguousarray(x, given.dtype) for x in (rows[query[part]], stored[picked])]
        with np.errstate(invalid="ignore", over="ignore"):
            found = exact_scores(metric, *pair)
        if np.isnan(found).any():
            for x, name, number in zip(pair, given.names, (query[part], row[part]), strict=True):
                check_finite_rows(x, name, number)
        scores[query[part], place[part]] = found
    order = np.lexsort((which, -scores), axis=1)[:, :k]
    scores, which = (np.take_along_axis(x, order, axis=1) for x in (scores, which))
    return give_back(given, Found(scores, which, (which >= 0).sum(axis=1)))


def _rerank_on_device(given: Inputs, which: np.ndarray, k: int, metric: Metric) -> TopK:
    """Return candidates by their score, on the device of the inputs."""
    xp, (rows, stored) = given.xp, (x.contiguous() for x in given.arrays)
    for x, name in zip((rows, stored), given.names, strict=True):
        _device.check_finite_rows(xp.reshape(x, (-1, x.shape[-1])), name)
    number = xp.asarray(np.ascontiguousarray(which), device=given.home.device)
    query, place = xp.nonzero(number >= 0)
    row = number[query, place]
    if stored.ndim == 3:
        row = query * stored.shape[1] + row
        stored = xp.reshape(stored, (-1, stored.shape[-1]))
    scores = xp.full(which.shape, -xp.inf, dtype=xp.float64, device=given.home.device)
    scores[query, place] = pair_scores(metric, rows, stored, query, row)
    last = xp.where(number >= 0, number, 2**62)
    order = xp.argsort(last, axis=1)
    scores, number = (xp.take_along_axis(x, order, axis=1) for x in (scores, number))
    order = xp.argsort(scores, axis=1, descending=True, stable=True)
    scores, number = (xp.take_along_axis(x, order, axis=1) for x in (scores, number))
    return TopK(given.give_back(scores[:, :k]), number[:, :k])


def recall(found: Any, truth: TopK, k: int | None = None) -> float:
    """Return the share of the true best that were found; any of equal scores is as good.

    Parameters
    ----------
    found : TopK or array of int or of str, shape (n, ...)
        What a search returned: with its exact scores, or row numbers or ids alone.
    truth : TopK, shape (n, ...)
        The exact result. Ties at its end are known only as far as it goes: ask it for more than k
        where row numbers alone are compared.
    k : int, optional
        How many of the best count; by default as many as ``truth`` has.

    Returns
    -------
    float
        Mean over the queries of the share of the k best that are among the first k found.

    Examples
    --------
    >>> import numpy as np
    >>> import recos
    >>> truth = recos.TopK(np.array([[0.9, 0.8, 0.8]]), np.array([[4, 2, 7]]))
    >>> recos.recall([[4, 7]], truth, k=2)
    1.0
    """
    scores, indices = (to_numpy(x) for x in truth)
    k = indices.shape[1] if k is None else min(read_k(k), indices.shape[1])
    rows = to_numpy(found.indices if isinstance(found, TopK) else found)
    if rows.ndim != 2 or len(rows) != len(indices):
        raise ValueError(
            f"found and truth: expected as many queries in each, got shapes {rows.shape} and "
            f"{indices.shape}"
        )
    there = np.isfinite(scores)  # a query may have fewer
    wanted = there[:, :k].sum(axis=1)
    if not wanted.any():
        return 1.0
    rows = rows[:, :k]
    valid = ~_repeats(rows) & ((rows >= 0) if rows.dtype.kind in "iu" else True)
    least = np.min(scores[:, :k], axis=1, where=there[:, :k], initial=np.inf)[:, None]
    good = there & (scores >= least)
    hits = ((rows[:, :, None] == indices[:, None, :]) & good[:, None, :]).any(axis=2)
    if isinstance(found, TopK):
        hits |= to_numpy(found.scores)[:, :k] >= least
    count = np.minimum((hits & valid).sum(axis=1), wanted)
    return float((count[wanted > 0] / wanted[wanted > 0]).mean())


def range_search(
    queries: Any,
    corpus: Any,
    /,
    threshold: float,
    *,
    metric: str | Metric = "recos",
    memory: str | int = "256MiB",
    progress: bool | None = None,
) -> Pairs:
    """Return every row whose similarity to a query reaches a threshold.

    `recos.above` yields the same pairs one by one, where there are too many to hold. What is
    compared with the threshold is the score that is reported: for float32 and float16 rows it is
    computed in float64 and rounded to float32 first, so 1 - 1e-9 reaches a threshold of 1.

    Parameters
    ----------
    queries : array, shape (n, d)
        Rows to find others for.
    corpus : array, shape (m, d)
        Rows to search.
    threshold : float
        The least similarity to report.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    memory : str or int
        How much to use beside the inputs and the result.
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Returns
    -------
    Pairs
        Named tuple (i, j, scores): query, row and similarity, ordered by query, then from the best
        down, then by row.

    Examples
    --------
    >>> import recos
    >>> corpus = [[1.0, 8.5, 2.0, 4.0], [2.0, 5.5, 1.0, 4.0], [-1.0, -2.0, -1.0, 0.0]]
    >>> recos.range_search([[1.0, 5.5, 2.0, 4.0]], corpus, 0.9).j
    array([0, 1])
    """
    names = "queries", "corpus"
    given = read_matrices(queries, corpus, names)
    found = _joined(_reaching(given, False, threshold, metric, memory, progress))
    order = np.lexsort((found.j, -found.scores, found.i))
    return _at_home(given, Pairs(*(field[order] for field in found)))


def mine_pairs(
    X: Any,
    /,
    *,
    threshold: float | None = None,
    k: int | None = None,
    max_pairs: int | None = None,
    metric: str | Metric = "recos",
    memory: str | int = "256MiB",
    progress: bool | None = None,
) -> Pairs:
    """Return the most similar pairs of rows: duplicates, paraphrases.

    Parameters
    ----------
    X : array, shape (n, d)
        Rows.
    threshold : float, optional
        Return all pairs that reach it, by scores as `range_search` compares them.
    k : int, optional
        Return the pairs of each row with its k best. Exactly one of the two is needed.
    max_pairs : int, optional
        How many pairs to keep at most.
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    memory : str or int
        How much to use beside the inputs and the result.
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Returns
    -------
    Pairs
        Named tuple (i, j, scores) with i < j, from the best down, then by i and j.

    Examples
    --------
    >>> import recos
    >>> X = [[1.0, 5.5, 2.0, 4.0], [2.0, 5.5, 1.0, 4.0], [1.0, 8.5, 2.0, 4.0]]
    >>> recos.mine_pairs(X, k=1, max_pairs=1)
    Pairs(i=array([0]), j=array([2]), scores=array([1.]))
    """
    if (threshold is None) == (k is None):
        raise ValueError(
            f"threshold and k: expected exactly one of them, got {threshold!r} and {k!r}"
        )
    most = None if max_pairs is None else read_k(max_pairs, "max_pairs")
    parts: list[Pairs] = []
    given = read_matrices(X, X, names=("X", "X"))
    given = given if is_plain_on_cuda(given) else on_host(given)
    budget = parse_memory(memory) * 5 // 8  # the rest is for choosing the best
    if threshold is not None:
        blocks = _reaching(given, True, threshold, metric, budget, progress)
    else:
        blocks = _nearest(given, read_k(k), find_metric(metric), budget, progress)
    for block in blocks:
        parts.append(block)
        if most is not None:
            parts = [_best_once(parts, most)]
    i, j, scores = _best_once(parts, most)
    if threshold is None:
        scores = to_numpy(given.give_back(given.xp.asarray(scores)))
    return _at_home(given, Pairs(i, j, scores))


def _nearest(
    given: Inputs, k: int, metric: Metric, budget: int, progress: bool | None
) -> Iterator[Pairs]:
    """Yield the pairs of rows with their k best, in float64; some pairs come from both sides."""
    rows = given.arrays[0]
    k = min(k, max(0, len(rows) - 1))
    if is_plain_on_cuda(given):
        found = _find_on_device(given, k, metric, None, np.arange(len(rows)), budget)
        row, other = np.repeat(np.arange(len(rows)), k), to_numpy(found.indices).ravel()
        scores = to_numpy(found.scores).ravel()
        yield Pairs(np.minimum(row, other), np.maximum(row, other), scores)
        return
    check_finite_rows(rows, given.names[0])
    for part in spans(len(rows), max(1, budget // 4 // (_PAIR * max(k, 1)))):
        own = np.arange(part.start, part.stop)
        best = _find(given, rows[part], k, metric, None, own, budget, progress)
        row = np.repeat(own, k)
        other = best.indices.ravel()
        yield Pairs(np.minimum(row, other), np.maximum(row, other), best.scores.ravel())


def _best_once(parts: list[Pairs], most: int | None) -> Pairs:
    """Return the best of some pairs, best first, each once."""
    i, j, scores = _joined(parts)
    if most is not None and len(scores) > 2 * most:  # a pair comes at most twice
        some = scores >= np.partition(scores, -2 * most)[-2 * most]
        i, j, scores = i[some], j[some], scores[some]
    order = np.lexsort((j, i, -scores))
    i, j, scores = i[order], j[order], scores[order]
    _, once = np.unique(i * (j.max(initial=0) + 1) + j, return_index=True)
    once = np.sort(once)[:most]
    return Pairs(i[once], j[once], scores[once])


def _joined(parts: Iterable[Pairs]) -> Pairs:
    none = Pairs(np.empty(0, int), np.empty(0, int), np.empty(0))
    return Pairs(*(np.concatenate(fields) for fields in zip(*(list(parts) or [none]), strict=True)))


def _at_home(given: Inputs, found: Pairs) -> Pairs:
    """Return pairs on the device of the inputs, if that is a GPU."""
    if not is_plain_on_cuda(given):
        return found
    return Pairs(*(given.xp.asarray(x, device=given.home.device) for x in found))


def _reaching(
    given: Inputs,
    mirrored: bool,
    threshold: float,
    metric: str | Metric,
    memory: str | int,
    progress: bool | None,
) -> Iterator[Pairs]:
    """Yield the pairs that reach a threshold; mirrored ones come once, with i < j."""
    if is_plain_on_cuda(given):
        return iter([_reaching_on_device(given, mirrored, threshold, metric, memory)])
    (X, Y), (first, second) = given.arrays, given.names
    Y = None if mirrored else Y
    grid = plan(X, Y, metric, memory, (first, second), holds_rows=False)
    check_rows_finite(grid)
    hits = find_hits(grid, read_threshold(threshold), upper=mirrored, progress=progress)
    return (Pairs(*found) for found in hits)


def _reaching_on_device(
    given: Inputs, mirrored: bool, threshold: float, metric: str | Metric, memory: str | int
) -> Pairs:
    """Return pairs that were found on the device of the inputs."""
    (rows, stored), threshold = given.arrays, read_threshold(threshold)
    _device.check_finite_rows(rows, given.names[0])
    # A score that is the threshold once it is rounded as scores are returned reaches it.
    rounding = 2.0**-24 if given.dtype == given.xp.float32 else 0.0
    i, j, scores = _device.reaching_rows(
        find_metric(metric), rows.contiguous(), stored, threshold - rounding * abs(threshold),
        memory=parse_memory(memory), name=given.names[1],
    )  # fmt: skip
    scores = given.xp.astype(scores, given.dtype)
    kept = (scores >= threshold) & ((i < j) | (not mirrored))
    return Pairs(*(to_numpy(field[kept]) for field in (i, j, scores)))


def read_k(k: Any, name: str = "k") -> int:
    """Return how many are asked for."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"{name}: expected a whole number of at least 1, got {k!r}")
    if k < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {k!r}")
    return int(k)


def read_where(where: Any, size: int) -> np.ndarray | None:
    """Return a filter as a mask, None where everything passes."""
    if where is None:
        return None
    chosen = to_numpy(where)
    if chosen.dtype == bool and chosen.shape == (size,):
        return np.ascontiguousarray(chosen)
    if chosen.ndim != 1 or not (np.issubdtype(chosen.dtype, np.integer) or not chosen.size):
        raise ValueError(
            f"where: expected a mask of {size} bools or row numbers, got shape {chosen.shape} of "
            f"{chosen.dtype}"
        )
    _check_rows(chosen, 0, size, "where")
    mask = np.zeros(size, bool)
    mask[chosen.astype(np.int64)] = True
    return mask


def _read_candidates(candidates: Any, queries: int, size: int) -> np.ndarray:
    """Return row numbers for each query, with -1 in the place of those that came before."""
    if candidates is None:
        return np.broadcast_to(np.arange(size), (queries, size))
    which = to_numpy(candidates)
    whole = np.issubdtype(which.dtype, np.integer) or not which.size
    if which.ndim != 2 or len(which) != queries or not whole:
        raise ValueError(
            f"candidates: expected row numbers of shape ({queries}, c), got shape {which.shape} of "
            f"{which.dtype}"
        )
    _check_rows(which, -1, size, "candidates")
    which = which.astype(np.int64)
    return np.where(_repeats(which), -1, which)


def _repeats(which: np.ndarray) -> np.ndarray:
    """Return which numbers or names in each row came before."""
    order = np.argsort(which, axis=1, kind="stable")
    ascending = np.take_along_axis(which, order, axis=1)
    again = np.zeros(which.shape, bool)
    np.put_along_axis(again, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return again


def _check_rows(which: np.ndarray, least: int, size: int, name: str) -> None:
    wrong = which[(which < least) | (which >= size)]
    if wrong.size:
        raise ValueError(
            f"{name}: expected row numbers from {least} to {size - 1}, got {wrong.flat[0]}"
        )


def check_finite_rows(x: np.ndarray, name: str, number: np.ndarray | None = None) -> None:
    """Raise for the first row that is not finite, by its number."""
    for part in spans(len(x), max(1, _SCORED // max(1, x.shape[1]))):
        bad = part.start + np.flatnonzero(~np.isfinite(x[part]).all(axis=1))
        if len(bad):
            row = bad[0] if number is None else number[bad[0]]
            raise ValueError(
                f"{name}: expected finite numbers, got NaN or infinity in row {row}; find such "
                f"rows with ~isfinite({name}).all(axis=-1), then drop or mend them"
            )


def give_back(given: Inputs, found: Found, ids: np.ndarray | None = None) -> TopK:
    """Return what was found in the array kind and floating family of the inputs.

    Where there are ids they take the place of row numbers; names stay NumPy arrays.
    """
    home, indices = given.home, found.indices.astype(np.int64, copy=False)
    if ids is not None:
        indices = np.take(ids, indices) if len(ids) else indices.astype(ids.dtype)
    if home.xp is not np and indices.dtype.kind == "i":
        indices = home.xp.asarray(indices, device=home.device)
    return TopK(given.give_back(found.scores), indices)

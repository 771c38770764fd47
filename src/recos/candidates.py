"""Engines that hold vectors already (faiss, usearch, a database) as sources of candidates.

An engine proposes rows, and they are scored exactly. `fold` makes any inner-product engine rank
nearly as recos does: with the mean profile μ, a sorted row of length 1, every unit row has a cosine
``c = μ·v↑`` and a residual ``ρ = √(1 - c²)``, and the engine holds ``v / c``. For unit u and v::

    u·(v/c_v) = recos(u, v) u↑·v↑/c_v     and     |u↑·v↑/c_v - c_u| <= ρ_u ρ_v/c_v

So where an engine is exact, no row that it did not propose scores more than its least proposal over
``c_u - ρ_u ρ_v/c_v``. `search` uses this to prove results, with the rounding of the engine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, on_host
from recos._blocks import run_blocks, spans
from recos._terms import sort_and_fold
from recos._tiles import read_matrices
from recos.engines import Engine, unit_rows
from recos.profiles import Profiles, describe
from recos.search import TopK, read_k, rerank, topk

_NUMBERS = 2**18  # that are multiplied at a time
_QUERIES = 64  # whose candidates are scored at a time
_SAMPLE = 4096  # rows that the mean profile is taken of
_LEAST = 0.1  # the cosine with the mean profile that a row must have to be folded
_GROWTH = 8  # how much more is fetched where the result is not proven
_EXHAUSTIVE = 128  # fetching more than this part of the rows costs more than searching all


class Candidates(NamedTuple):
    """The best rows for each query, and whether no other row can be better.

    Attributes
    ----------
    scores : array, shape (queries, k)
        Similarities, descending; -inf where the engine proposed too few rows.
    indices : array of int64, shape (queries, k)
        Row numbers; -1 where the engine proposed too few.
    certified : numpy.ndarray of bool, shape (queries,)
        Where the result is proven to be that of `recos.topk`. Count them with ``sum()``.
    """

    scores: Array
    indices: Array
    certified: np.ndarray


class Folded(NamedTuple):
    """Vectors ready for an inner-product engine, and what proofs need to know of them.

    Attributes
    ----------
    vectors : array, shape (n, d)
        The vectors as they were given.
    rows : numpy.ndarray of float32, shape (n, d)
        What the engine has to hold, in this order: v / (‖v‖ c), or 0 for zero and loose rows.
    weights : numpy.ndarray, shape (n,)
        1/c, or 0 for zero and loose rows.
    order : numpy.ndarray of int, shape (n,)
        Row numbers from the largest residual ρ/c down.
    residuals : numpy.ndarray, shape (n,)
        ρ/c in that order: infinite for loose rows, which do not resemble the mean profile and are
        scored for every query.
    basis : Profiles
        The mean profile.
    """

    vectors: Array
    rows: np.ndarray
    weights: np.ndarray
    order: np.ndarray
    residuals: np.ndarray
    basis: Profiles

    @property
    def loose(self) -> np.ndarray:
        """Return the row numbers of loose rows."""
        return self.order[: np.isinf(self.residuals).sum()]


def fold(vectors: Any, /) -> Folded:
    """Return vectors so that inner products with unit queries rank nearly as recos does.

    Parameters
    ----------
    vectors : array, shape (n, d)
        Rows to search. They are kept, not copied.

    Returns
    -------
    Folded
        Its ``rows`` are what an engine has to hold.

    Raises
    ------
    ValueError
        If more than one in a thousand rows (and more than 64) do not resemble the mean profile.

    Examples
    --------
    >>> import numpy as np
    >>> from recos import candidates
    >>> X = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    >>> folded = candidates.fold(X)
    >>> folded.rows.shape, len(folded.loose)
    ((1000, 64), 0)
    """
    given = on_host(read_matrices(vectors, vectors, names=("vectors", "vectors")))
    stored, size = given.arrays[0], len(given.arrays[0])
    rows = unit_rows(stored, given.dtype, "vectors")
    basis = _mean_profile(rows)
    features = describe(basis, rows, rows.dtype, name="vectors") if size else basis.transform(rows)
    cosine, residual = features.table.T.astype(np.float64)
    zero = features.over == 0
    loose = (cosine < _LEAST) & ~zero
    if loose.sum() > max(64, size // 1000):
        raise ValueError(
            f"vectors: expected rows whose sorted values resemble their mean, got {loose.sum()} of "
            f"{size} rows whose cosine with it is below {_LEAST}, such as row {loose.argmax()}; "
            "search these vectors with recos.topk"
        )
    weights = np.divide(1, cosine, where=~(zero | loose), out=np.zeros(size))
    np.multiply(rows, weights[:, None], out=rows, casting="same_kind")
    residuals = np.where(loose, np.inf, residual * weights)
    order = np.argsort(-residuals, kind="stable")
    kept = stored if isinstance(vectors, (list, tuple)) else vectors
    return Folded(kept, rows, weights, order, residuals[order], basis)


def search(
    queries: Any,
    corpus: Any,
    engine: Engine,
    /,
    k: int = 10,
    *,
    overfetch: float = 2.0,
    certify: bool = False,
) -> Candidates:
    """Return the k best of the rows that an engine proposes, by their exact recos.

    Parameters
    ----------
    queries : array, shape (n, d)
        Rows to find others for.
    corpus : Folded, or array of shape (m, d)
        The folded vectors whose ``rows`` the engine holds. Vectors alone, for an engine that ranks
        by the cosine or by recos itself: nothing is proven then.
    engine : Engine
        Such as `recos.engines.FaissEngine` or `UsearchEngine`.
    k : int
        How many to find; fewer are returned where there are fewer rows.
    overfetch : float
        How many times k rows the engine is asked for.
    certify : bool
        Whether to fetch more for each query until no other row can be better, and search all rows
        where that needs too many. Only for an exact engine: what another engine did not visit may
        always be better, so that its results are certified only where it proposed every row.

    Returns
    -------
    Candidates
        Named tuple (scores, indices, certified), ordered by score, then by index.

    Examples
    --------
    >>> import numpy as np
    >>> from recos import candidates
    >>> class Exhaustive:
    ...     exact = True
    ...
    ...     def __init__(self, rows):
    ...         self.rows = rows
    ...
    ...     def __len__(self):
    ...         return len(self.rows)
    ...
    ...     def propose(self, queries, count):
    ...         return np.argsort(-queries @ self.rows.T, axis=1)[:, :count]
    >>> X = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    >>> folded = candidates.fold(X)
    >>> found = candidates.search(X[:5], folded, Exhaustive(folded.rows), k=3, certify=True)
    >>> found.indices[:, 0], found.certified.all()
    (array([0, 1, 2, 3, 4]), np.True_)
    """
    folded = corpus if isinstance(corpus, Folded) else None
    vectors = corpus if folded is None else folded.vectors
    given = on_host(read_matrices(queries, vectors, names=("queries", "corpus")))
    rows, stored = given.arrays[0].astype(given.dtype, copy=False), given.arrays[1]
    if certify and folded is None:
        raise ValueError(
            f"certify: expected folded vectors, got {type(corpus).__name__}; pass "
            "candidates.fold(vectors), and let the engine hold its rows"
        )
    if len(engine) != len(stored):
        raise ValueError(
            f"engine: expected the {len(stored)} rows of the corpus, got an engine that holds "
            f"{len(engine)}; add each row once, in order"
        )
    if isinstance(overfetch, bool) or not overfetch >= 1:
        raise ValueError(f"overfetch: expected a number of at least 1, got {overfetch!r}")
    k = min(read_k(k), len(stored))
    count = min(len(stored), int(np.ceil(overfetch * k)))
    scores, indices = np.full((len(rows), k), -np.inf), np.full((len(rows), k), -1)
    certified, open_ = np.full(len(rows), certify and not k), np.arange(len(rows) if k else 0)
    unit = unit_rows(rows, given.dtype, "queries")
    certain = certify and engine.exact
    while len(open_):
        if certain and count > max(len(stored) // _EXHAUSTIVE, 2 * k):
            scores[open_], indices[open_] = topk(rows[open_], stored, k)
            certified[open_] = True
            break
        which = _proposed(engine, unit[open_], count)
        some = rows[open_]
        loose = np.empty(0, int) if folded is None else folded.loose
        both = np.hstack([which, np.broadcast_to(loose, (len(which), len(loose)))])
        best = _reranked(some, stored, both, k)
        proven = np.zeros(len(open_), bool)
        if certify and folded is not None:
            proven = _all_proposed(which, len(stored))
            if engine.exact:
                need = _unproven(folded, unit[open_], which, best.scores[:, -1])
                few = np.flatnonzero((need > len(loose)) & (need <= count) & ~proven)
                more = np.arange(len(loose), need[few].max(initial=len(loose)))
                more = np.where(more < need[few, None], folded.order[more], -1)
                more = np.hstack([best.indices[few], more])
                best.scores[few], best.indices[few] = _reranked(some[few], stored, more, k)
                proven |= need <= max(count, len(loose))
        scores[open_], indices[open_], certified[open_] = best.scores, best.indices, proven
        open_ = open_[~proven if certain else slice(0)]
        count = min(len(stored), count * _GROWTH)
    home = given.home
    if home.xp is not np:
        indices = home.xp.asarray(indices, device=home.device)
    return Candidates(given.give_back(scores), indices, certified)


def _mean_profile(unit: np.ndarray) -> Profiles:
    """Return the mean of some sorted unit rows as a basis of one vector."""
    total = np.sort(unit[:: max(1, len(unit) // _SAMPLE)], axis=1).sum(axis=0, dtype=np.float64)
    length = np.sqrt(total @ total)
    mean = total / length if length > 1e-6 else np.full(len(total), len(total) ** -0.5)
    even, odd = sort_and_fold(mean[None])
    even[:, : len(mean) // 2] /= 2  # the middle of an odd width was not doubled
    return Profiles(even, odd / 2)


def _proposed(engine: Engine, queries: np.ndarray, count: int) -> np.ndarray:
    which = np.asarray(engine.propose(queries, count))
    if which.shape != (len(queries), count) or not np.issubdtype(which.dtype, np.integer):
        raise ValueError(
            f"engine: expected row numbers of shape {(len(queries), count)}, -1 where there are "
            f"fewer, got shape {which.shape} of {which.dtype}"
        )
    return which.astype(np.int64)


def _reranked(rows: np.ndarray, stored: Any, which: np.ndarray, k: int) -> TopK:
    """Return the best candidates of each query, some queries at a time on threads."""

    def work(part: slice) -> TopK:
        return rerank(rows[part], stored, candidates=which[part], k=k)

    parts = run_blocks(work, spans(len(rows), _QUERIES)) or [work(slice(0))]
    return TopK(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def _all_proposed(which: np.ndarray, size: int) -> np.ndarray:
    """Return which queries every row was proposed to."""
    if which.shape[1] < size:
        return np.zeros(len(which), bool)
    every: np.ndarray = (np.sort(which, axis=1)[:, -size:] == np.arange(size)).all(axis=1)
    return every


def _unproven(folded: Folded, unit: np.ndarray, which: np.ndarray, kth: np.ndarray) -> np.ndarray:
    """Return how many rows, in the order of their residuals, may reach the k-th best score.

    All others that were not proposed score less for certain.
    """
    size, width = folded.rows.shape
    most = folded.weights.max(initial=1.0)
    # The worst case of a float32 sum of products, and of what is rounded before it.
    error = (width + 16) * 2.0**-24 * most
    products = np.empty(which.shape)
    for part in spans(len(which), max(1, _NUMBERS // (width * which.shape[1]))):
        picked = folded.rows[which[part]].astype(np.float64)
        products[part] = np.einsum("qcd,qd->qc", picked, unit[part].astype(np.float64))
    missing = which < 0
    products[missing] = -np.inf
    rising = products[:, 1:] > products[:, :-1] + 2 * error
    if rising.any():
        raise ValueError(
            "engine: expected rows in the order of their inner products, as it says that it is "
            f"exact, got row {which[:, 1:][rising][0]} behind one with a smaller product; let it "
            "hold folded.rows in order, compare by the inner product, or say exact=False"
        )
    # What the product of any other row can be, and what score must be ruled out.
    least = np.min(products, axis=1, where=~missing, initial=np.inf) + 2 * error
    floor = kth - 2 * np.finfo(np.float32).eps
    table = describe(folded.basis, unit, unit.dtype, name="queries").table
    cosine, residual = table.T.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        limit = np.where(least > 0, (cosine - least / floor) / residual, np.inf)
    # A negative similarity is at most the cosine: the product over its weight.
    limit[(floor <= 0) & (least / most >= floor)] = -np.inf
    distinct = ~missing & _first_of_each(which)
    limit[distinct.sum(axis=1) < which.shape[1]] = -np.inf  # it did not propose what it should
    need: np.ndarray = size - np.searchsorted(folded.residuals[::-1], limit, side="left")
    return need


def _first_of_each(which: np.ndarray) -> np.ndarray:
    order = np.argsort(which, axis=1, kind="stable")
    ascending = np.take_along_axis(which, order, axis=1)
    first = np.ones(which.shape, bool)
    np.put_along_axis(first, order[:, 1:], ascending[:, 1:] != ascending[:, :-1], axis=1)
    return first

"""Engines that hold vectors already (faiss, usearch, a database) as sources of candidates.

An engine proposes rows, and they are scored exactly. `fold` makes any inner-product engine rank
nearly as recos does. The bound of unit rows is nearly the product of a few coordinates of their
profiles, u↑·v↑ ≈ P(u)·P(v) (see `recos.profiles`), so recos reaches a level s nearly where::

    u·v - s P(u)·P(v) >= 0

The left side is the inner product of ``[v | P(v)]`` with ``[u | -s P(u)]``: the engine holds the
one, and queries are the other, with s near the scores that are looked for. A graph's links come
from products of rows with rows, so the coordinates are held a quarter as large, and four times as
large in queries: then links are nearly those of the cosine.

With residuals ρ, |u↑·v↑ - P(u)·P(v)| <= ρ(u) ρ(v). So where an engine is exact, g the product of
its least proposal, and s = t, a row that it did not propose and that scores at least t has::

    0 <= g + t ρ(u) ρ(v)

`search` uses this to prove results, with the rounding of the engine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, on_host
from recos._blocks import run_blocks, spans
from recos._tiles import read_matrices
from recos.engines import Engine, unit_rows
from recos.profiles import Profiles, describe
from recos.search import TopK, read_k, rerank, topk

_NUMBERS = 2**18  # that are multiplied at a time
_QUERIES = 64  # whose candidates are scored at a time
_SAMPLE = 4096  # rows that the level of scores is taken from
_LOOSEST = 0.8  # the residual up to which a row is folded
_HELD = np.float32(0.25)  # the share of coordinates that the engine holds
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
    rows : numpy.ndarray of float32, shape (n, d + r)
        What the engine has to hold, in this order: unit rows and a quarter of their coordinates.
    order : numpy.ndarray of int, shape (n,)
        Row numbers from the largest residual ρ down.
    residuals : numpy.ndarray, shape (n,)
        ρ in that order: infinite for loose rows, whose profile the basis does not hold. The engine
        does not propose them, and they are scored for every query.
    basis : Profiles
        What the coordinates are in.
    level : float
        About what the best rows score.
    """

    vectors: Array
    rows: np.ndarray
    order: np.ndarray
    residuals: np.ndarray
    basis: Profiles
    level: float

    @property
    def loose(self) -> np.ndarray:
        """Return the row numbers of loose rows."""
        return self.order[: np.isinf(self.residuals).sum()]

    def queries(self, unit: np.ndarray, level: Any = None) -> np.ndarray:
        """Return what the engine is asked for unit queries: float32, shape (n, d + r).

        `search` does this by itself. The level is a number, or one for each query.
        """
        levels = np.broadcast_to(self.level if level is None else level, len(unit))
        found = describe(self.basis, unit, unit.dtype, name="queries").table[:, :-1]
        return np.hstack([unit, found * (-levels[:, None] / _HELD).astype(np.float32)])


def fold(vectors: Any, /, *, coordinates: int = 8) -> Folded:
    """Return vectors so that inner products with folded queries rank nearly as recos does.

    Parameters
    ----------
    vectors : array, shape (n, d)
        Rows to search. They are kept, not copied.
    coordinates : int
        How many coordinates of its profile a row has, r: more rank better and cost the engine more.

    Returns
    -------
    Folded
        Its ``rows`` are what an engine has to hold.

    Raises
    ------
    ValueError
        If more than one in a thousand rows (and more than 64) have profiles unlike the others.

    Examples
    --------
    >>> import numpy as np
    >>> from recos import candidates
    >>> X = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    >>> folded = candidates.fold(X)
    >>> folded.rows.shape, len(folded.loose)
    ((1000, 72), 0)
    """
    given = on_host(read_matrices(vectors, vectors, names=("vectors", "vectors")))
    stored, size = given.arrays[0], len(given.arrays[0])
    rows = unit_rows(stored, given.dtype, "vectors")
    zero = ~rows.any(axis=1)
    basis = Profiles.fit(rows[~zero], min(read_k(coordinates, "coordinates"), rows.shape[1]))
    table = describe(basis, rows, rows.dtype, name="vectors").table if size else np.empty((0, 1))
    table, residuals = table[:, :-1], table[:, -1].astype(np.float64)
    loose = residuals > _LOOSEST
    if loose.sum() > max(64, size // 1000):
        raise ValueError(
            f"vectors: expected rows whose sorted values resemble each other, got {loose.sum()} of "
            f"{size} rows that have more than {_LOOSEST} beside {basis.rank} coordinates, such as "
            f"row {loose.argmax()}; search these vectors with recos.topk"
        )
    hidden = zero | loose
    level = _level(rows[~hidden], table[~hidden])
    rows[hidden] = 0
    table[hidden] = table[~hidden].mean(axis=0) if not hidden.all() else 0  # as far as a score of 0
    residuals[loose] = np.inf
    order = np.argsort(-residuals, kind="stable")
    kept = stored if isinstance(vectors, (list, tuple)) else vectors
    return Folded(kept, np.hstack([rows, table * _HELD]), order, residuals[order], basis, level)


def _level(rows: np.ndarray, table: np.ndarray) -> float:
    """Return about what the best of all rows scores: the median of the best of a sample."""
    step = max(1, len(rows) // _SAMPLE)
    rows, table = rows[::step][:_SAMPLE], table[::step][:_SAMPLE]
    few = slice(None, None, 16)
    bound = np.maximum(table[few] @ table.T, 1e-6)
    scores = np.clip(rows[few] @ rows.T / bound, 0, 1)
    np.fill_diagonal(scores[:, few], 0)  # itself
    return float(np.median(scores.max(axis=1))) if scores.size else 0.0


def search(
    queries: Any,
    corpus: Any,
    engine: Engine,
    /,
    k: int = 10,
    *,
    overfetch: float = 1.5,
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
    certified, open_ = np.zeros(len(rows), bool), np.arange(len(rows) if k else 0)
    unit = unit_rows(rows, given.dtype, "queries")
    certain = certify and engine.exact
    levels = np.full(len(rows), folded.level if folded else 0.0)
    while len(open_):
        if certain and count > max(len(stored) // _EXHAUSTIVE, 2 * k):
            scores[open_], indices[open_] = topk(rows[open_], stored, k)
            certified[open_] = True
            break
        asked = folded.queries(unit[open_], levels[open_]) if folded else unit[open_]
        which = _proposed(engine, asked, count)
        some = rows[open_]
        loose = np.empty(0, int) if folded is None else folded.loose
        both = np.hstack([which, np.broadcast_to(loose, (len(which), len(loose)))])
        best = _reranked(some, stored, both, k)
        proven = np.zeros(len(open_), bool)
        if certify and folded is not None:
            proven = _all_proposed(which, len(stored))
            if engine.exact:
                need = _unproven(folded, asked, levels[open_], which, best.scores[:, -1])
                few = np.flatnonzero((need > len(loose)) & (need <= count) & ~proven)
                more = np.arange(len(loose), need[few].max(initial=len(loose)))
                more = np.where(more < need[few, None], folded.order[more], -1)
                more = np.hstack([best.indices[few], more])
                best.scores[few], best.indices[few] = _reranked(some[few], stored, more, k)
                proven |= need <= max(count, len(loose))
        scores[open_], indices[open_], certified[open_] = best.scores, best.indices, proven
        levels[open_] = np.clip(best.scores[:, -1], 0, 1)  # what proves the most
        open_ = open_[~proven if certain else slice(0)]
        count = min(len(stored), count * _GROWTH)
    home = given.home
    if home.xp is not np:
        indices = home.xp.asarray(indices, device=home.device)
    return Candidates(given.give_back(scores), indices, certified)


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


def _unproven(
    folded: Folded, asked: np.ndarray, levels: np.ndarray, which: np.ndarray, kth: np.ndarray
) -> np.ndarray:
    """Return how many rows, in the order of their residuals, may reach the k-th best score.

    All others that were not proposed score less for certain.
    """
    size, width = folded.rows.shape
    # The worst case of a float32 sum of products, and of what is rounded before it.
    error = (width + 16) * 2.0**-24 * (1 + levels)
    products = np.empty(which.shape)
    for part in spans(len(which), max(1, _NUMBERS // (width * which.shape[1]))):
        picked = folded.rows[which[part]].astype(np.float64)
        products[part] = np.einsum("qcd,qd->qc", picked, asked[part].astype(np.float64))
    missing = which < 0
    products[missing] = -np.inf
    rising = products[:, 1:] > products[:, :-1] + 2 * error[:, None]
    if rising.any():
        raise ValueError(
            "engine: expected rows in the order of their inner products, as it says that it is "
            f"exact, got row {which[:, 1:][rising][0]} behind one with a smaller product; let it "
            "hold folded.rows in order, compare by the inner product, or say exact=False"
        )
    # What the product of any other row can be, and what score must be ruled out.
    least = np.min(products, axis=1, where=~missing, initial=np.inf) + 2 * error
    floor = kth - 2 * np.finfo(np.float32).eps
    unit = np.ascontiguousarray(asked[:, : width - folded.basis.rank])
    own = describe(folded.basis, unit, unit.dtype, name="queries").table[:, -1].astype(np.float64)
    # With p = P(u)·P(v), a row that reaches the floor t has t (p - ρρ) - s p <= least. That is
    # ruled out by the smallest p, -ρρ, where t >= s, and by the largest, 1 + ρρ, elsewhere.
    above = np.maximum(floor - levels, 0)
    below = np.maximum(levels - floor, 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        limit = (-least - below) / ((floor + above + below) * own)
    # A negative similarity is at most the cosine.
    limit[floor <= 0] = np.where((levels == 0) & (least < floor), np.inf, -np.inf)[floor <= 0]
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

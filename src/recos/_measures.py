"""What is measured on a sample of embeddings: directions, pairs of rows, and lists of neighbours.

Each function returns facts for `Diagnosis` and signs for `_advice.Signs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recos.index import Index
from recos.pairs import paired, pairwise
from recos.search import topk
from recos.transforms import Center, Transform, Whiten

K = 10  # rows in a list of neighbours
_QUERIES = 500
_PAIRS = 5_000  # random ones
_WORK = 2**20  # pairs that searches may score: fewer queries where each needs many
_SPREAD = 14  # neighbours of a row, from the first to the last, that pairs are made of
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_COSINES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
_SAME = 1e-5  # 1 - rank correlation below which recos ranks as the cosine does

Found = tuple[dict[str, Any], dict[str, Any]]


def measure_directions(X: np.ndarray) -> Found:
    """Return which component is largest, and how unequal directions are."""
    square, mean = np.square(X).mean(axis=0), X.mean(axis=0)
    variance = X.var(axis=0)
    total = max(float(variance.sum()), 1e-300)
    largest = int(square.argmax())
    along, directions = np.linalg.eigh(np.cov(X.T, bias=True).reshape(X.shape[1], -1))
    along, first = along[::-1], directions[:, -1]
    along = along[along > 1e-9 * along[0]] if along[0] > 0 else np.ones(1)
    squares = np.square(along)
    effective = along.sum() ** 2 / squares.sum()
    spread = np.where(variance > 0, variance, 1)
    kurtosis = np.square(np.square(X - mean)).mean(axis=0) / spread**2
    facts = {
        "largest": largest,
        "variance_share": float(variance[largest]) / total,
        "energy_share": float(square[largest] / max(square.sum(), 1e-300)),
        "top_share": float(along[0] / along.sum()),
        "effective_width": float(effective),
    }
    signs = {
        "top_odds": float(squares[0] / max(squares[1:].sum(), 1e-3 * squares[0])),
        "alignment": float((first @ mean) ** 2 / max(mean @ mean, 1e-300)),
        "evenness": float(effective / len(along)),
        "axis_evenness": float(total**2 / max(X.shape[1] * np.square(variance).sum(), 1e-300)),
        "kurtosis": float(np.median(kurtosis)),
    }
    return facts, signs


def measure_pairs(X: np.ndarray, learnt: np.ndarray, rng: np.random.Generator) -> Found:
    """Return how recos and the cosine differ over all pairs of X, and over related ones.

    Transforms are fitted to ``learnt``.
    """
    n, width = X.shape
    enough = len(learnt) >= 3 * width
    cosine = pairwise(X, metric="cos")
    centred, white = _changed(Center(), X, learnt), _changed(Whiten(), X, learnt)
    better = pairwise(white if enough else centred, metric="cos")
    related = _related_pairs(cosine, better)
    rotation = np.linalg.qr(rng.normal(size=(width, width)))[0]
    by_cosine, by_recos = _both(X, related)
    rank_correlation = _spearman(by_cosine, by_recos)
    facts = {
        "random_cosine": float(cosine[np.triu_indices(n, 1)].mean()),
        "row_share": _row_share(cosine),
        "profile_cosine": _profile_cosines(X, rng),
        "rank_correlation": rank_correlation,
        "surviving_rotation": _surviving(by_cosine, by_recos, _both(X @ rotation, related)[1]),
        "thresholds": _thresholds(by_cosine, by_recos),
    }
    target = better[related]
    signs = {
        "row_share": facts["row_share"],
        "random_cosine": facts["random_cosine"],
        "moved": 1 - rank_correlation,
        "moved_centred": 1 - _spearman(*_both(centred, related)),
        "towards": _spearman(by_recos, target) - _spearman(by_cosine, target),
        "enough": enough,
    }
    return facts, signs


def measure_lists(
    X: np.ndarray, usual: int, rng: np.random.Generator
) -> tuple[dict[str, Any], np.ndarray]:
    """Return how lists of neighbours change, and in which share of them each row is.

    Rows behind the first ``usual`` are odd: they may be found, but are no queries, and changes do
    not count them. The shares have a row each for the cosine and recos.
    """
    k, index = min(K, len(X) - 1), Index(X)
    queries = rng.permutation(usual)[:_QUERIES]
    _, scored = index._search(X[queries[:8]], k + 1, None, "256MiB", False)
    queries = queries[: max(32, int(_WORK / scored.mean()))]
    asked = X[queries]
    by_recos, scored = index._search(asked, k + 1, None, "256MiB", False)
    found = [topk(asked, X, k + 1, metric="cos", progress=False).indices, by_recos.indices]
    cosine, recos = (_without_self(which, queries) for which in found)
    new = ~(cosine[:, None, :] == recos[:, :, None]).any(axis=2) & (recos < usual)
    shares = [np.bincount(which.ravel(), minlength=len(X)) for which in (cosine, recos)]
    facts = {
        "changed_lists": float(new.any(axis=1).mean()),
        "changed_entries": float(new.sum() / max((recos < usual).sum(), 1)),
        "candidates": float(scored.mean()),
    }
    return facts, np.array(shares) / len(queries)


def _both(X: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosine and recos of pairs of rows."""
    u, v = (X[which] for which in pairs)
    return paired(u, v, metric="cos", progress=False), paired(u, v, progress=False)


def _profile_cosines(X: np.ndarray, rng: np.random.Generator) -> dict[float, float]:
    """Return quantiles of the cosine over recos, of random pairs."""
    i, j = rng.integers(0, len(X), (2, _PAIRS))
    cosine, recos = _both(X, (i[i != j], j[i != j]))
    known = recos != 0
    found = np.quantile(np.abs(cosine[known] / recos[known]), _QUANTILES) if known.any() else [1.0]
    return dict(zip(_QUANTILES, np.broadcast_to(found, len(_QUANTILES)).tolist(), strict=True))


def _changed(transform: Transform, X: np.ndarray, learnt: np.ndarray) -> np.ndarray:
    changed: np.ndarray = transform.fit(learnt).transform(X)
    return changed


def _related_pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of each row with its neighbours from the nearest to the farthest, by both."""
    n = len(first)
    ranks = (np.argsort(np.argsort(scores, axis=1), axis=1) for scores in (first, second))
    rank = next(ranks) + next(ranks)
    np.fill_diagonal(rank, -1)
    places = np.unique(np.geomspace(1, n - 1, _SPREAD).astype(int)) - 1
    order = np.argsort(-rank, axis=1, kind="stable")[:, places]
    return np.repeat(np.arange(n), len(places)), order.ravel()


def _row_share(scores: np.ndarray) -> float:
    """Return the share of the variance between pairs that is a sum of one number for each row."""
    n = len(scores)
    rest = scores.copy()
    np.fill_diagonal(rest, 0)
    mean = rest.sum() / (n * (n - 1))
    of_rows = (rest.sum(axis=1) / (n - 1) - mean) * (n - 1) / max(n - 2, 1)
    variance = np.square(rest).sum() / (n * (n - 1)) - mean**2
    # What a sum over finitely many pairs shows by chance is taken off.
    chance = max(variance - 2 * of_rows.var(), 0) / n
    return float(np.clip(2 * (of_rows.var() - chance) / max(variance, 1e-300), 0, 1))


def _surviving(cosine: np.ndarray, recos: np.ndarray, rotated: np.ndarray) -> float | None:
    """Return which share of what recos changes it changes alike after a rotation.

    The change is the logarithm of recos over the cosine, less its mean.
    """
    some = (np.abs(cosine) > 0.02) & (recos != 0) & (rotated != 0)
    if some.sum() < 3 or 1 - _spearman(cosine, recos) < _SAME:
        return None
    before, after = (np.log(np.abs(scores[some] / cosine[some])) for scores in (recos, rotated))
    before, after = before - before.mean(), after - after.mean()
    return float(np.clip(before @ after / max(before @ before, 1e-300), 0, 1))


def _thresholds(cosine: np.ndarray, recos: np.ndarray) -> dict[float, float]:
    """Return, for some cosines, the recos that as many pairs reach.

    Cosines beyond all pairs are scaled as the largest is.
    """
    low, high = np.sort(cosine), np.sort(recos)
    found = {}
    for threshold in _COSINES:
        if threshold > low[-1]:
            matched = threshold * high[-1] / max(low[-1], 1e-9)
        elif threshold < low[0]:
            matched = threshold
        else:
            matched = float(np.interp(threshold, low, high))
        found[threshold] = float(np.clip(matched, threshold, 1))
    return found


def _without_self(which: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return lists of neighbours without the row itself, or without the last where it is not in."""
    mine = which == own[:, None]
    mine[~mine.any(axis=1), -1] = True
    kept: np.ndarray = which[~mine].reshape(len(which), -1)
    return kept


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return the rank correlation; ties are ordered as they come, as few are expected."""
    ranks = [np.argsort(np.argsort(np.round(x, 12), kind="stable"), kind="stable") for x in (a, b)]
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 1.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])

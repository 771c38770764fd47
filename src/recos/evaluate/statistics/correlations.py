"""How well scores rank the pairs of one task, and whether two of them differ.

All intervals are bootstrap intervals over pairs, bias-corrected and accelerated (BCa; Efron 1987,
Better bootstrap confidence intervals). A resample is a row of weights, how often each pair was
drawn. Ranks within a resample follow from the weights and the order of the scores, which is found
once: no resample is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atanh, nan, sqrt
from typing import Any, Literal

import numpy as np

from recos._blocks import run_blocks
from recos.evaluate._extras import load
from recos.evaluate.statistics.result import Test, check_options, labels, numbers

Kind = Literal["spearman", "pearson"]
_BLOCK = 100  # resamples that one job draws
_NONE = 1e-12  # differences of correlations that are rounding
_ROUNDING = 1e-14  # and their variances, for one pair
_PAIRS = "pairs are independent draws from the pairs one wants to know about"


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlations of several variants with the same human scores, and their resamples.

    `correlate` makes one. ``estimates[i]`` belongs to variant i, ``resampled[i]`` holds its
    correlation in each resample (the same pairs for all variants), and ``influence[i]`` the
    derivative of its correlation with respect to the weight of each pair.
    """

    kind: Kind
    estimates: np.ndarray
    resampled: np.ndarray
    influence: np.ndarray
    between: np.ndarray | None
    confidence: float

    def test(self, i: int = 0) -> Test:
        """Return the correlation of a variant with its BCa interval."""
        return self._test(
            f"{self.kind} correlation", self.estimates[i], self.resampled[i], self.influence[i]
        )

    def difference(self, i: int, j: int) -> Test:
        """Return the correlation of variant i less that of variant j: a paired bootstrap.

        ``p`` belongs to the interval. ``detail`` holds other tests of the same difference:
        ``influence``, a t-test whose variance is the sum of squared influences, and Williams's and
        Steiger's, which reject too often where noise grows with the human score. There are none
        for three pairs or variants that are alike but for rounding, and the last two are missing
        for means over subsets or a correlation of one too.
        """
        found = self._test(
            f"difference of {self.kind} correlations",
            self.estimates[i] - self.estimates[j],
            self.resampled[i] - self.resampled[j],
            self.influence[i] - self.influence[j],
        )
        found.detail.update(first=float(self.estimates[i]), second=float(self.estimates[j]))
        influence = _influence_t(found.statistic, self.influence[i] - self.influence[j])
        if influence is not None:
            found.detail["influence"] = influence
        r12, r13 = found.detail["first"], found.detail["second"]
        if self.between is not None and found.n > 3 and max(abs(r12), abs(r13)) < 1:
            for test in (williams, steiger):
                other = test(r12, r13, float(self.between[i, j]), found.n)
                if np.isfinite(other.statistic):
                    found.detail[test.__name__] = {"statistic": other.statistic, "p": other.p}
        return found

    def _test(
        self, name: str, estimate: float, resampled: np.ndarray, influence: np.ndarray
    ) -> Test:
        resampled = resampled[np.isfinite(resampled)]  # a draw of equal scores has no correlation
        low, high = bca(estimate, resampled, influence, confidence=self.confidence)
        return Test(
            name,
            statistic=float(estimate),
            p=_bca_p(estimate, resampled, influence),
            estimate=float(estimate),
            low=low,
            high=high,
            n=len(influence),
            assumes=_PAIRS,
            detail={"confidence": self.confidence, "resamples": len(resampled)},
        )


def correlate(
    scores: Any,
    human: Any,
    *,
    kind: Kind = "spearman",
    subsets: Sequence[str] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Correlations:
    """Correlate the scores of several variants with human scores, and resample the pairs.

    Parameters
    ----------
    scores : array, shape (v, n)
        A row of scores for each variant.
    human : array, shape (n,)
        The scores that people gave.
    kind : str
        ``spearman`` or ``pearson``.
    subsets : sequence of str, optional
        The subset of each pair: then a correlation is the mean over subsets, and pairs are drawn
        within each. By default all pairs make one correlation.
    resamples : int
        How many times pairs are drawn.
    seed : int
        The same seed draws the same pairs, whatever the variants.
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    Correlations
        ``.test(i)`` for a variant, ``.difference(i, j)`` for two.

    Examples
    --------
    >>> from recos.evaluate.statistics import correlate
    >>> human = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> found = correlate([[1, 2, 3, 4, 6, 5], [2, 1, 4, 3, 5, 6]], human, seed=0)
    >>> found.estimates
    array([0.94285714, 0.88571429])
    >>> found.difference(0, 1).estimate
    0.0571428
    """
    x, y = _read(scores, human, kind, resamples, confidence)
    parts = [np.arange(len(y))]
    if subsets is not None:
        known, part = labels(subsets, "subsets", len(y))
        parts = [np.flatnonzero(part == i) for i in range(len(known))]
    rng = np.random.default_rng(seed)
    found = [_resample(x[:, part], y[part], kind, resamples, rng) for part in parts]
    estimates, resampled, influence = zip(*found, strict=True)
    order = np.argsort(np.concatenate(parts))
    return Correlations(
        kind,
        estimates=np.mean(estimates, axis=0),
        resampled=np.mean(resampled, axis=0),
        influence=np.concatenate(influence, axis=1)[:, order] / len(parts),
        between=_between(x, kind) if len(parts) == 1 else None,
        confidence=confidence,
    )


def spearman(x: Any, y: Any, **options: Any) -> Test:
    """Return Spearman's rank correlation of two rows, with a BCa interval over pairs.

    Parameters
    ----------
    x, y : array, shape (n,)
        Scores of the same pairs.
    **options
        ``resamples``, ``seed``, ``confidence`` and ``subsets`` of `correlate`.

    Returns
    -------
    Test
        The correlation as ``estimate``, between ``low`` and ``high``.

    Examples
    --------
    >>> from recos.evaluate.statistics import spearman
    >>> spearman([1, 2, 3, 4, 6, 5], [0, 1, 2, 3, 4, 5]).estimate
    0.9428571
    """
    return correlate([x], y, kind="spearman", **options).test()


def pearson(x: Any, y: Any, **options: Any) -> Test:
    """Return Pearson's correlation of two rows, with a BCa interval over pairs.

    Parameters
    ----------
    x, y : array, shape (n,)
        Scores of the same pairs.
    **options
        ``resamples``, ``seed``, ``confidence`` and ``subsets`` of `correlate`.

    Returns
    -------
    Test
        The correlation as ``estimate``, between ``low`` and ``high``.

    Examples
    --------
    >>> from recos.evaluate.statistics import pearson
    >>> pearson([1, 2, 3, 4, 6, 5], [0, 1, 2, 3, 4, 5]).estimate
    0.9428571
    """
    return correlate([x], y, kind="pearson", **options).test()


def compare_correlations(a: Any, b: Any, human: Any, **options: Any) -> Test:
    """Return how much better ``a`` correlates with human scores than ``b``: a paired bootstrap.

    Parameters
    ----------
    a, b, human : array, shape (n,)
        Scores of the same pairs.
    **options
        ``kind``, ``resamples``, ``seed``, ``confidence`` and ``subsets`` of `correlate`.

    Returns
    -------
    Test
        ``estimate = r(a, human) - r(b, human)``; ``detail`` holds more tests of it, see
        `Correlations.difference`.

    Examples
    --------
    >>> from recos.evaluate.statistics import compare_correlations
    >>> human = [0, 1, 2, 3, 4, 5]
    >>> compare_correlations([1, 2, 3, 4, 6, 5], [2, 1, 4, 3, 5, 6], human).estimate
    0.0571428
    """
    return correlate([a, b], human, **options).difference(0, 1)


def bca(
    estimate: float, resampled: Any, influence: Any, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the bias-corrected and accelerated bootstrap interval of a statistic.

    Parameters
    ----------
    estimate : float
        The statistic of the data.
    resampled : array, shape (b,)
        The statistic of each resample.
    influence : array, shape (n,)
        How the statistic moves with the weight of each observation: its derivative, or the
        estimate less the statistic without the observation (the jackknife).
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    tuple of float
        The quantiles Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))) of the resamples, z = ±Φ⁻¹ of the
        confidence, z₀ the bias correction, a the acceleration.

    Examples
    --------
    >>> import numpy as np
    >>> from recos.evaluate.statistics import bca
    >>> x = np.random.default_rng(0).exponential(size=50)
    >>> means = x[np.random.default_rng(1).integers(50, size=(5000, 50))].mean(axis=1)
    >>> low, high = bca(x.mean(), means, x - x.mean())
    >>> bool(low < x.mean() < high)
    True
    """
    normal = load("scipy.stats").norm
    draws = numbers(resampled, "resampled")
    if draws.min() == draws.max():
        return float(draws[0]), float(draws[0])
    bias, acceleration = _corrections(estimate, draws, influence)
    z = bias + normal.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = np.quantile(draws, normal.cdf(bias + z / (1 - acceleration * z)))
    return float(low), float(high)


def _corrections(estimate: float, draws: np.ndarray, influence: Any) -> tuple[float, float]:
    """Return the bias correction z₀ and the acceleration a."""
    h = np.asarray(influence, np.float64)
    acceleration = (h**3).sum() / (6 * (h @ h) ** 1.5) if h.any() else 0.0
    return _normal_share(draws, estimate), float(acceleration)


def _normal_share(draws: np.ndarray, value: float) -> float:
    """Return Φ⁻¹ of the share of draws below a value; one beyond all counts as half a draw."""
    share = np.mean(draws < value) + np.mean(draws == value) / 2
    least = 0.5 / len(draws)
    return float(load("scipy.stats").norm.ppf(np.clip(share, least, 1 - least)))


def _bca_p(estimate: float, draws: np.ndarray, influence: np.ndarray) -> float:
    """Return the p at which the BCa interval of confidence 1 - p ends at 0."""
    if draws.min() == draws.max():
        return 1.0 if draws[0] == 0 else 1 / len(draws)
    bias, acceleration = _corrections(estimate, draws, influence)
    away = _normal_share(draws, 0.0) - bias
    z = away / max(1 + acceleration * away, 1e-3) - bias
    return max(1 / len(draws), float(2 * load("scipy.stats").norm.sf(abs(z))))


def _influence_t(gain: float, influence: np.ndarray) -> dict[str, float] | None:
    """Return a t-test of an estimate by the influence of each pair, None where there is none."""
    n = len(influence)
    if n < 4:
        return None
    spread = float(influence @ influence) * n / (n - 1)
    if abs(gain) <= _NONE:
        return {"statistic": 0.0, "p": 1.0}
    if spread <= _NONE**2:
        return None
    t = gain / sqrt(spread)
    return {"statistic": t, "p": float(2 * load("scipy.stats").t.sf(abs(t), n - 1))}


def williams(r12: float, r13: float, r23: float, n: int) -> Test:
    """Test whether two correlations with the same third variable differ (Williams 1959).

    Parameters
    ----------
    r12, r13 : float
        The correlations to compare.
    r23 : float
        The correlation of the two variables that differ.
    n : int
        The number of observations.

    Returns
    -------
    Test
        A t of n - 3 degrees of freedom, two-sided; NaN if the two are alike but for rounding.

    Examples
    --------
    >>> from recos.evaluate.statistics import williams
    >>> williams(0.4, 0.5, 0.1, n=103).statistic
    -0.8913
    """
    _check_correlations(r12, r13, r23, n)
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    spread = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    gain = r12 - r13
    t = _over(gain * sqrt((n - 1) * (1 + r23)), spread)
    return Test(
        "Williams's t",
        statistic=t,
        p=float(2 * load("scipy.stats").t.sf(abs(t), n - 3)),
        estimate=gain,
        low=None,
        high=None,
        n=n,
        assumes=f"{_PAIRS}, normal in all three variables: it rejects too often where noise grows "
        "with the human score, and for ranks somewhat too often",
        detail={"df": n - 3},
    )


def steiger(r12: float, r13: float, r23: float, n: int) -> Test:
    """Test whether two correlations with the same third variable differ (Steiger 1980).

    Fisher's z of both, with the covariance taken at their mean.

    Parameters
    ----------
    r12, r13 : float
        The correlations to compare.
    r23 : float
        The correlation of the two variables that differ.
    n : int
        The number of observations.

    Returns
    -------
    Test
        A normal z, two-sided; NaN if the two are alike but for rounding.

    Examples
    --------
    >>> from recos.evaluate.statistics import steiger
    >>> steiger(0.4, 0.5, 0.1, n=103).statistic
    -0.8887
    """
    _check_correlations(r12, r13, r23, n)
    mean = ((r12 + r13) / 2) ** 2
    covariance = r23 * (1 - 2 * mean) - mean * (1 - 2 * mean - r23**2) / 2
    spread = 2 - 2 * covariance / (1 - mean) ** 2
    gain = r12 - r13
    z = _over((atanh(r12) - atanh(r13)) * sqrt(n - 3), spread)
    return Test(
        "Steiger's z",
        statistic=z,
        p=float(2 * load("scipy.stats").norm.sf(abs(z))),
        estimate=gain,
        low=None,
        high=None,
        n=n,
        assumes=f"{_PAIRS}, normal in all three variables, and many: it rejects too often where "
        "noise grows with the human score, and for ranks somewhat too often",
    )


def _over(gain: float, spread: float) -> float:
    """Return a gain over its spread: 0 if it is rounding, NaN if its spread is."""
    if abs(gain) <= _NONE:
        return 0.0
    return gain / sqrt(spread) if spread > _ROUNDING else nan


def _check_correlations(r12: float, r13: float, r23: float, n: int) -> None:
    if not all(-1 < r < 1 for r in (r12, r13)) or not -1 < r23 <= 1:
        raise ValueError(f"expected correlations between -1 and 1, got {r12}, {r13} and {r23}")
    if n < 4:
        raise ValueError(f"n: expected 4 or more observations, got {n}")


def _read(
    scores: Any, human: Any, kind: str, resamples: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    if kind not in ("spearman", "pearson"):
        raise ValueError(f"kind: expected 'spearman' or 'pearson', got {kind!r}")
    if resamples < 2:
        raise ValueError(f"resamples: expected 2 or more, got {resamples}")
    check_options(confidence)
    y = numbers(human, "human", least=3)
    rows = [numbers(row, f"scores[{i}]", least=3) for i, row in enumerate(scores)]
    for i, row in enumerate(rows):
        if len(row) != len(y):
            raise ValueError(f"scores[{i}]: expected {len(y)} as human has, got {len(row)}")
    return np.stack(rows), y


def _resample(
    x: np.ndarray, y: np.ndarray, kind: Kind, resamples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return estimates (v,), their resamples (v, b) and influences (v, n) of one set of pairs."""
    for name, row in (("human", y), *((f"scores[{i}]", row) for i, row in enumerate(x))):
        if len(row) < 3:
            raise ValueError(f"{name}: expected 3 or more pairs in each subset, got {len(row)}")
        if row.min() == row.max():
            raise ValueError(
                f"{name}: expected scores that differ, got {row[0]} for all {len(row)} pairs; a "
                "constant has no correlation"
            )
    columns = [_Ranks(row) if kind == "spearman" else _Values(row) for row in (*x, y)]
    correlate_drawn = _weighted_ranks(columns) if kind == "spearman" else _weighted(columns)
    size = len(y)

    def work(job: tuple[int, np.random.Generator]) -> np.ndarray:
        start, own = job
        found = np.empty((min(_BLOCK, resamples - start), len(x)))
        for row in found:  # how often each pair is drawn
            drawn = np.bincount(own.integers(size, size=size), minlength=size)
            correlate_drawn(drawn.astype(np.float64), row)
        return found

    starts = range(0, resamples, _BLOCK)  # each with its own draws, whatever thread it runs on
    blocks = run_blocks(work, list(zip(starts, rng.spawn(len(starts)), strict=True)))
    estimates, ones = np.empty(len(x)), np.ones(size)
    _weighted(columns)(ones, estimates)
    influence = np.stack([_influence(column, columns[-1], ones) for column in columns[:-1]])
    return estimates, np.concatenate(blocks).T, influence


class _Values:
    """A variable as it is: what Pearson's correlation is made of."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = (x - x.mean()) / x.std()

    def centred(self, weights: np.ndarray) -> np.ndarray:
        """Return the variable less its weighted mean."""
        centred: np.ndarray = self.x - (weights @ self.x) / weights.sum()
        return centred

    def pulled(self, values: np.ndarray) -> np.ndarray | float:
        """Return how the sum of ``values`` times this moves with each weight: not at all."""
        return 0.0


class _Ranks:
    """A variable by its order: what Spearman's correlation is made of."""

    def __init__(self, x: np.ndarray) -> None:
        known, self.group = np.unique(x, return_inverse=True)
        self.size = len(known)

    def centred(self, weights: np.ndarray) -> np.ndarray:
        """Return the mean ranks of the weighted observations, less their mean."""
        total = np.bincount(self.group, weights, self.size)
        centred: np.ndarray = (np.cumsum(total) - total / 2 - weights.sum() / 2)[self.group]
        return centred

    def pulled(self, values: np.ndarray) -> np.ndarray:
        """Return how the sum of ``values`` times ranks moves with each weight.

        One more observation lifts the ranks of all above it by one, of those equal by a half.
        """
        total = np.bincount(self.group, values, self.size)
        pulled: np.ndarray = (total.sum() - np.cumsum(total) + total / 2)[self.group]
        return pulled


def _weighted(columns: list[Any]) -> Callable[[np.ndarray, np.ndarray], None]:
    """Return what writes the weighted correlation of each column with the last."""

    def write(weights: np.ndarray, out: np.ndarray) -> None:
        target = columns[-1].centred(weights)
        own = (weights * target) @ target
        for i, column in enumerate(columns[:-1]):
            x = column.centred(weights)
            product = weights * x
            below = (product @ x) * own
            out[i] = product @ target / sqrt(below) if below > 0 else np.nan

    return write


def _weighted_ranks(columns: list[Any]) -> Callable[[np.ndarray, np.ndarray], None]:
    """Return the same for ranks, compiled."""
    from recos._kernels.ranks import rank_correlations  # noqa: PLC0415 - loads Numba

    groups = np.stack([column.group for column in columns]).astype(np.int64)
    sizes = np.array([column.size for column in columns], dtype=np.int64)
    return lambda weights, out: rank_correlations(groups, sizes, weights, out)


def _influence(column: Any, target: Any, ones: np.ndarray) -> np.ndarray:
    """Return the derivative of the correlation with respect to the weight of each pair."""
    x, y = column.centred(ones), target.centred(ones)
    xx, yy, xy = x @ x, y @ y, x @ y
    moved = x * y + column.pulled(y) + target.pulled(x)
    moved_x, moved_y = x * x + 2 * column.pulled(x), y * y + 2 * target.pulled(y)
    scale = sqrt(xx * yy)
    influence: np.ndarray = moved / scale - xy / scale / 2 * (moved_x / xx + moved_y / yy)
    return influence


def _between(x: np.ndarray, kind: Kind) -> np.ndarray:
    """Return the correlations of the variants with each other."""
    rows = (
        x if kind == "pearson" else np.stack([_Ranks(row).centred(np.ones(len(row))) for row in x])
    )
    return np.atleast_2d(np.corrcoef(rows))

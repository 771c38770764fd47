"""Wilcoxon's signed ranks: p, pseudo-median and interval, exact or by the normal approximation."""

from __future__ import annotations

from bisect import bisect_left
from math import inf, sqrt
from typing import Any

import numpy as np

from recos.evaluate._extras import load
from recos.evaluate.statistics.result import (
    SETTINGS,
    Alternative,
    Test,
    check_options,
    numbers,
    tail_of,
)


def wilcoxon(
    differences: Any,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    digits: int | None = 10,
) -> Test:
    """Test whether the differences lie around zero (Wilcoxon's signed ranks).

    As ``wilcox.test`` of R: zeros are dropped; with fewer than 50 differences, no zeros and no ties
    the distribution of V is exact, else normal with a continuity correction. The pseudo-median
    (Hodges and Lehmann) and its interval are found exactly, where R's search for a root stops
    1e-4 from it. An interval is unbounded where so few differences allow none of that confidence
    (R lowers the confidence), and equal differences have none.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.
    alternative : str
        ``two-sided``, ``greater`` or ``less``.
    confidence : float
        The share of intervals that are to hold the truth.
    digits : int, optional
        Differences that agree in so many digits of the largest one are ties, since a subtraction
        of decimals leaves errors behind the last digits. With None only equal floats are.

    Returns
    -------
    Test
        ``statistic`` is V, the sum of the ranks of positive differences; ``estimate`` the
        pseudo-median; ``detail`` holds z, and r = z / √n with Pratt's z, which ranks zeros too.

    Examples
    --------
    >>> from recos.evaluate.statistics import wilcoxon
    >>> found = wilcoxon([0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01])
    >>> found.statistic, found.p, found.estimate, found.low, found.high
    (40.0, 0.03906, 0.46, 0.01, 0.786)
    """
    check_options(confidence, alternative)
    d = with_ties(numbers(differences, "differences"), digits)
    nonzero = d[d != 0]
    ranks = load("scipy.stats").rankdata(np.abs(nonzero))
    exact = len(d) == len(nonzero) == len(np.unique(ranks)) < 50
    v = float(ranks[nonzero > 0].sum())
    low: float | None
    high: float | None
    if not len(nonzero):
        p, z, estimate, low, high = 1.0, 0.0, 0.0, None, None
    else:
        z = _signed_rank_z(nonzero, 0.0, alternative)
        inference = _exact_signed_rank if exact else _normal_signed_rank
        p, estimate, low, high = inference(nonzero, v, alternative, confidence)
        if d.min() == d.max():
            low = high = None
    return Test(
        "Wilcoxon signed-rank",
        v,
        p,
        estimate,
        low,
        high,
        len(d),
        f"{SETTINGS}; differences are symmetric about their pseudo-median",
        {
            "nonzero": len(nonzero),
            "exact": exact,
            "z": z,
            "r": _pratt_z(d) / sqrt(len(d)),
            "alternative": alternative,
            "confidence": confidence,
        },
    )


def with_ties(d: np.ndarray, digits: int | None) -> np.ndarray:
    """Round differences, so that what differs in the last bits alone is equal."""
    if digits is None or not d.any():
        return d
    return np.round(d, digits - int(np.ceil(np.log10(np.abs(d).max()))))


def _signed_rank_z(d: np.ndarray, shift: float, alternative: Alternative | None) -> float:
    """Return the standardised V of differences less a shift; None: no continuity correction."""
    moved = d - shift
    moved = moved[np.abs(moved) > 1e-12 * np.abs(d).max()]
    n = len(moved)
    if not n:
        return 0.0
    ranks = load("scipy.stats").rankdata(np.abs(moved))
    tied = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    excess = float(ranks[moved > 0].sum()) - n * (n + 1) / 4
    correction = {None: 0.0, "greater": 0.5, "less": -0.5, "two-sided": float(np.sign(excess)) / 2}
    spread = n * (n + 1) * (2 * n + 1) / 24 - float((tied**3 - tied).sum()) / 48
    return (excess - correction[alternative]) / sqrt(spread)


def _pratt_z(d: np.ndarray) -> float:
    """Return the standardised sum of positive ranks, where zeros are ranked and then dropped."""
    ranks = load("scipy.stats").rankdata(np.abs(d))[d != 0]
    positive = d[d != 0] > 0
    return float(ranks[positive].sum() - ranks.sum() / 2) / sqrt(float(ranks @ ranks) / 4 or 1.0)


def _walsh(d: np.ndarray) -> np.ndarray:
    """Return the means of all pairs of differences, each with itself too, in order."""
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


def _exact_signed_rank(
    d: np.ndarray, v: float, alternative: Alternative, confidence: float
) -> tuple[float, float, float, float]:
    """Return p, pseudo-median and interval by the distribution of V over all signs."""
    weights = np.ones(1)
    for rank in range(1, len(d) + 1):
        grown = np.zeros(len(weights) + rank)
        grown[: len(weights)] += weights / 2
        grown[rank:] += weights / 2
        weights = grown
    below = np.cumsum(weights)
    whole = round(v)
    above = 1.0 - (below[whole - 1] if whole else 0.0)
    p = tail_of(float(below[whole]), float(above), alternative)
    walsh = _walsh(d)
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    drop = int(np.searchsorted(below, tail * (1 - 1e-12)))  # Walsh averages left out
    low = -inf if alternative == "less" or not drop else float(walsh[drop - 1])
    high = inf if alternative == "greater" or not drop else float(walsh[len(walsh) - drop])
    return p, float(np.median(walsh)), low, high


def _normal_signed_rank(
    d: np.ndarray, v: float, alternative: Alternative, confidence: float
) -> tuple[float, float, float, float]:
    """Return p, pseudo-median and interval by the normal approximation of V."""
    normal = load("scipy.stats").norm
    z = _signed_rank_z(d, 0.0, alternative)
    p = tail_of(float(normal.cdf(z)), float(normal.sf(z)), alternative)
    walsh = np.unique(_walsh(d))
    walsh = walsh[np.append(True, np.diff(walsh) > 1e-9 * np.abs(d).max())]
    middles = (walsh[1:] + walsh[:-1]) / 2

    def crossing(level: float, corrected: Alternative | None) -> float:
        """Return the shift at which the standardised V falls from above a level to below it."""

        def reaches(i: int, strictly: bool) -> bool:
            found = _signed_rank_z(d, float(middles[i]), corrected)
            return found < level if strictly else found <= level

        steps = range(len(middles))
        first = bisect_left(steps, True, key=lambda i: reaches(i, strictly=False))
        last = bisect_left(steps, True, key=lambda i: reaches(i, strictly=True))
        return float(walsh[first] + walsh[last]) / 2

    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    level = float(normal.isf(tail))
    beyond = 2 * float(np.abs(d).max()) * (1 if alternative == "less" else -1)
    most = abs(_signed_rank_z(d, beyond, alternative))  # that any shift can give
    low = -inf if alternative == "less" or most < level else crossing(level, alternative)
    high = inf if alternative == "greater" or most < level else crossing(-level, alternative)
    return p, crossing(0.0, None), low, high

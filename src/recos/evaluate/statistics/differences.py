"""Whether a gain over many settings is real; a setting is one model on one data set.

Functions take one difference for each setting: the score of a method less that of the baseline.
Settings share models and data sets, so they are not independent: the tests that treat them as if
they were say so; `two_way_t` and `cluster_bootstrap` do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np

from recos.evaluate._extras import load
from recos.evaluate.statistics.mixed import mixed_model
from recos.evaluate.statistics.ranks import wilcoxon, with_ties
from recos.evaluate.statistics.result import (
    SETTINGS,
    Alternative,
    Test,
    check_options,
    labels,
    numbers,
    tail_of,
)

_DRAWS = "models and data sets are independent draws from those one wants to know about"
_LEVELS = 6  # models, or data sets, that a bootstrap can draw from
_FAMILY = (
    "paired_t",
    "wilcoxon",
    "sign",
    "mixed_model",
)  # adjusted for each other, as in the paper


def describe(differences: Any) -> dict[str, float]:
    """Return what the differences are like: their size, spread, quartiles, wins and losses.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.

    Returns
    -------
    dict of str to float
        ``win_rate`` is the share of wins among settings that are no tie.

    Examples
    --------
    >>> from recos.evaluate.statistics import describe
    >>> describe([1.0, 2.0, 0.0, -1.0])["wins"], describe([1.0, 2.0, 0.0, -1.0])["mean"]
    (2, 0.5)
    """
    d = numbers(differences, "differences")
    low, first, median, third, high = np.quantile(d, [0, 0.25, 0.5, 0.75, 1]).tolist()
    wins, losses = int((d > 0).sum()), int((d < 0).sum())
    return {
        "n": len(d),
        "mean": float(d.mean()),
        "sd": float(d.std(ddof=1)),
        "error": float(d.std(ddof=1) / sqrt(len(d))),
        "median": median,
        "min": low,
        "max": high,
        "q1": first,
        "q3": third,
        "iqr": third - first,
        "wins": wins,
        "ties": len(d) - wins - losses,
        "losses": losses,
        "win_rate": wins / (wins + losses) if wins + losses else float("nan"),
    }


def shapiro(differences: Any) -> Test:
    """Test whether the differences could be normal (Shapiro and Wilk).

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.

    Returns
    -------
    Test
        ``statistic`` is W; a small p speaks against a normal distribution.

    Examples
    --------
    >>> from recos.evaluate.statistics import shapiro
    >>> shapiro([0.1, 0.2, 0.2, 0.3, 5.0]).statistic
    0.58336
    """
    d = numbers(differences, "differences", least=3)
    found = load("scipy.stats").shapiro(d)
    w, p = float(found.statistic), float(found.pvalue)
    return Test("Shapiro-Wilk", w, p, None, None, None, len(d), SETTINGS)


def paired_t(
    differences: Any, *, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Test:
    """Test whether the mean difference is zero (the paired t-test).

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.
    alternative : str
        ``two-sided``, ``greater`` or ``less``.
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    Test
        ``estimate`` is the mean difference; ``detail`` holds Cohen's d_z.

    Examples
    --------
    >>> from recos.evaluate.statistics import paired_t
    >>> paired_t([1.0, 2.0, 3.0]).statistic
    3.464
    """
    check_options(confidence, alternative)
    d = numbers(differences, "differences")
    if d.min() == d.max():
        raise ValueError(f"differences: expected two values or more for a t-test, got {d[0]} alone")
    found = load("scipy.stats").ttest_1samp(d, 0.0, alternative=alternative)
    low, high = found.confidence_interval(confidence)
    return Test(
        "paired t-test",
        float(found.statistic),
        float(found.pvalue),
        float(d.mean()),
        float(low),
        float(high),
        len(d),
        f"{SETTINGS}; their mean is near normal",
        {
            "df": len(d) - 1,
            "d_z": cohens_dz(d),
            "alternative": alternative,
            "confidence": confidence,
        },
    )


def sign_test(
    differences: Any, *, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Test:
    """Test whether gains and losses are equally frequent (the sign test).

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting; zeros are dropped.
    alternative : str
        ``two-sided``, ``greater`` or ``less``.
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    Test
        ``statistic`` counts gains; ``estimate`` is their share, with the exact interval of Clopper
        and Pearson.

    Examples
    --------
    >>> from recos.evaluate.statistics import sign_test
    >>> found = sign_test([1.0, 2.0, 0.0, 3.0, 1.0, 4.0])
    >>> found.statistic, found.n, found.p
    (5.0, 5, 0.0625)
    """
    check_options(confidence, alternative)
    d = numbers(differences, "differences")
    wins, n = int((d > 0).sum()), int((d != 0).sum())
    if not n:
        return Test("sign test", 0.0, 1.0, None, None, None, 0, SETTINGS)
    found = load("scipy.stats").binomtest(wins, n, alternative=alternative)
    low, high = found.proportion_ci(confidence)
    detail = {"alternative": alternative, "confidence": confidence}
    numbers_found = (float(wins), float(found.pvalue), wins / n, float(low), float(high))
    return Test("sign test", *numbers_found, n, SETTINGS, detail)


def benjamini_hochberg(p: Any) -> np.ndarray:
    """Return p-values adjusted so that few of those below a level are false discoveries.

    Parameters
    ----------
    p : array, shape (m,)
        The p-values of a family of tests.

    Returns
    -------
    numpy.ndarray, shape (m,)
        The least level at which each test is significant (Benjamini and Hochberg 1995).

    Examples
    --------
    >>> from recos.evaluate.statistics import benjamini_hochberg
    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    adjusted: np.ndarray = load("scipy.stats").false_discovery_control(numbers(p, "p", least=1))
    return adjusted


def cohens_d(scores_a: Any, scores_b: Any) -> float:
    """Return the difference of two means over their pooled standard deviation.

    It measures the gain in units of how much scores vary between models and data sets, though
    both methods had the same: see `cohens_dz`.

    Parameters
    ----------
    scores_a, scores_b : array, shape (n,)
        Scores of two methods.

    Returns
    -------
    float
        d, of unpaired samples.

    Examples
    --------
    >>> from recos.evaluate.statistics import cohens_d
    >>> cohens_d([2.0, 4.0, 6.0], [1.0, 3.0, 5.0])
    0.5
    """
    a, b = numbers(scores_a, "scores_a"), numbers(scores_b, "scores_b")
    free = len(a) + len(b) - 2
    if np.ptp(a) == np.ptp(b) == 0:
        raise ValueError(f"scores_a: expected scores that differ, got {a[0]:g} alone, and {b[0]:g}")
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / free
    return float((a.mean() - b.mean()) / sqrt(pooled))


def cohens_dz(differences: Any) -> float:
    """Return the mean difference over the standard deviation of the differences.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.

    Returns
    -------
    float
        d_z, of paired samples: t / √n.

    Examples
    --------
    >>> from recos.evaluate.statistics import cohens_dz
    >>> cohens_dz([1.0, 2.0, 3.0])
    2.0
    """
    d = numbers(differences, "differences")
    if np.ptp(d) == 0:
        raise ValueError(f"differences: expected two values or more, got {d[0]:g} alone")
    return float(d.mean() / d.std(ddof=1))


def means_by(differences: Any, groups: Sequence[Any]) -> dict[str, float]:
    """Return the mean difference of each group: of each model, or of each data set.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.
    groups : sequence, length n
        The group of each setting.

    Returns
    -------
    dict of str to float
        Means by group, in order of appearance.

    Examples
    --------
    >>> from recos.evaluate.statistics import means_by
    >>> means_by([1.0, 3.0, 4.0], ["x", "x", "y"])
    {'x': 2.0, 'y': 4.0}
    """
    d = numbers(differences, "differences", least=1)
    known, group = labels(groups, "groups", len(d))
    means = np.bincount(group, d) / np.bincount(group)
    return dict(zip(known, means.tolist(), strict=True))


def leave_one_out(differences: Any, groups: Sequence[Any]) -> Test:
    """Return the mean difference without each group in turn: the least, the largest, the worst p.

    The means share most of their settings. A t-test of them, as the paper has it, treats them as
    independent, and finds t of any size; so there is none here.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.
    groups : sequence, length n
        The group of each setting: its model, or its data set.

    Returns
    -------
    Test
        ``low`` and ``high`` are the least and the largest mean, ``statistic`` and ``p`` are those
        of the exclusion with the largest p of a paired t-test; ``detail["means"]`` holds all.

    Examples
    --------
    >>> from recos.evaluate.statistics import leave_one_out
    >>> leave_one_out([1.0, 3.0, 4.0, 5.0], ["x", "x", "y", "z"]).detail["means"]
    {'x': 4.5, 'y': 3.0, 'z': 2.6667}
    """
    d = numbers(differences, "differences", least=3)
    known, group = labels(groups, "groups", len(d))
    if len(known) < 2 or len(d) - np.bincount(group).max() < 2:
        raise ValueError("groups: expected two or more differences outside each group, got fewer")
    rest = [d[group != i] for i in range(len(known))]
    means = [float(part.mean()) for part in rest]
    p, t = max(_p_and_t(part) for part in rest)
    return Test(
        "leave one out",
        t,
        p,
        float(np.mean(means)),
        min(means),
        max(means),
        len(known),
        f"within each exclusion, {SETTINGS}; the range of means is no confidence interval",
        {"means": dict(zip(known, means, strict=True))},
    )


def _p_and_t(d: np.ndarray) -> tuple[float, float]:
    if d.min() < d.max():
        found = paired_t(d)
        return found.p, found.statistic
    return (0.0, float(np.copysign(inf, d[0]))) if d[0] else (1.0, 0.0)


def two_way_t(
    differences: Any,
    models: Sequence[Any],
    datasets: Sequence[Any],
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> Test:
    """Test whether the mean difference is zero for other models and data sets too.

    The variance of the mean is that of models plus that of data sets, each with the variance of
    the settings in it, and has Satterthwaite's degrees of freedom. A factor of one level adds
    nothing: with one model this is the t-test of the data sets, and says nothing of other models.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.
    models, datasets : sequence, length n
        The model and the data set of each setting.
    alternative : str
        ``two-sided``, ``greater`` or ``less``.
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    Test
        ``estimate`` is the mean difference. The test rejects too seldom where neither models nor
        data sets differ, and somewhat too often with two of one and many of the other.

    Examples
    --------
    >>> from recos.evaluate.statistics import two_way_t
    >>> found = two_way_t([1, 2, 3, 5], ["x", "x", "y", "y"], ["s", "t", "s", "t"])
    >>> found.estimate, found.statistic, found.detail["df"]
    (2.75, 1.8865, 1.6374)
    """
    check_options(confidence, alternative)
    d = numbers(differences, "differences")
    known, parts = [], []
    for given, name in ((models, "models"), (datasets, "datasets")):
        found, level = labels(given, name, len(d))
        known.append(len(found))
        if len(found) > 1:
            pulls = np.bincount(level, d - d.mean()) / len(d)  # of each level on the mean
            free = len(found) - 1
            parts.append((len(found) / free * float(pulls @ pulls), free))
    variance = sum(part for part, _ in parts)
    if variance <= (1e-12 * np.abs(d).max()) ** 2:
        raise ValueError("differences: expected means of models or data sets that differ, got none")
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    spread = load("scipy.stats").t(freedom)
    error, mean = sqrt(variance), float(d.mean())
    t = mean / error
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    half = float(spread.isf(tail)) * error
    alone = [name for name, count in zip(("model", "data set"), known, strict=True) if count == 1]
    return Test(
        "two-way t-test",
        t,
        tail_of(float(spread.cdf(t)), float(spread.sf(t)), alternative),
        mean,
        -inf if alternative == "less" else mean - half,
        inf if alternative == "greater" else mean + half,
        len(d),
        f"{_DRAWS}, and their means near normal"
        + (f"; it holds for this one {alone[0]} alone" if alone else ""),
        {"df": freedom, "alternative": alternative, "confidence": confidence},
    )


def cluster_bootstrap(
    differences: Any,
    models: Sequence[Any],
    datasets: Sequence[Any],
    *,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Test:
    """Return an interval for the mean difference that holds for other models and data sets too.

    Models and data sets are drawn with replacement, each on their own, and a setting counts as
    often as its model was drawn times its data set (Owen 2007, The pigeonhole bootstrap). Draws
    from few of them vary too little, so six of each are asked for: with fewer see `two_way_t`.

    Parameters
    ----------
    differences : array, shape (n,)
        The gain in each setting.
    models, datasets : sequence, length n
        The model and the data set of each setting.
    resamples : int
        How many times they are drawn.
    seed : int
        The same seed draws the same.
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    Test
        The mean difference and its percentile interval; ``p`` is two-sided, and at least
        2 / (resamples + 1).

    Examples
    --------
    >>> from recos.evaluate.statistics import cluster_bootstrap
    >>> models, datasets = [i // 6 for i in range(36)], [i % 6 for i in range(36)]
    >>> found = cluster_bootstrap([float(m) for m in models], models, datasets)
    >>> found.low < found.estimate == 2.5 < found.high
    True
    """
    check_options(confidence)
    d = numbers(differences, "differences", least=1)
    rng = np.random.default_rng(seed)
    table = []
    for given, name in ((models, "models"), (datasets, "datasets")):
        known, level = labels(given, name, len(d))
        if len(known) < _LEVELS:
            raise ValueError(
                f"{name}: expected {_LEVELS} or more to draw from, got {len(known)}; use two_way_t"
            )
        counts = rng.multinomial(len(known), np.full(len(known), 1 / len(known)), size=resamples)
        table.append(counts[:, level])
    weights = table[0] * table[1]
    total = weights.sum(axis=1)
    means = (weights @ d)[total > 0] / total[total > 0]  # a draw may miss all settings there are
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    beyond = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return Test(
        "cluster bootstrap",
        float(d.mean()),
        float(min(1.0, 2 * (beyond + 1) / (len(means) + 1))),
        float(d.mean()),
        low,
        high,
        len(d),
        f"{_DRAWS}; with fewer than twenty of them the interval is somewhat narrow",
        {"resamples": len(means), "confidence": confidence, "least_p": 2 / (len(means) + 1)},
    )


def across(
    scores_a: Any,
    scores_b: Any,
    models: Sequence[Any],
    datasets: Sequence[Any],
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Test]:
    """Return all tests of method a against baseline b over the same settings.

    Parameters
    ----------
    scores_a, scores_b : array, shape (n,)
        Scores of two methods in the same settings.
    models, datasets : sequence, length n
        The model and the data set of each setting.
    alternative : str
        ``two-sided``, ``greater`` or ``less``: for the t-tests, Wilcoxon's and the sign test.
    confidence : float
        The share of intervals that are to hold the truth.
    seed : int
        Of the bootstrap.

    Returns
    -------
    dict of str to Test
        ``shapiro``, ``paired_t``, ``wilcoxon``, ``sign``, ``mixed_model``, ``per_model`` and
        ``per_dataset`` (t-tests of means), ``two_way_t``, ``leave_one_model_out``,
        ``leave_one_dataset_out`` and ``cluster_bootstrap``. What the settings do not allow is left
        out. ``paired_t``, ``wilcoxon``, ``sign`` and ``mixed_model`` have
        ``detail["adjusted_p"]``; ``paired_t`` has Cohen's d of unpaired scores beside d_z, and what
        `describe` tells.

    Examples
    --------
    >>> from recos.evaluate.statistics import across
    >>> a, b = [3.1, 4.2, 6.0, 7.4], [3.0, 4.0, 5.7, 7.3]
    >>> found = across(a, b, ["x", "x", "y", "y"], ["s", "t", "s", "t"])
    >>> found["sign"].p, found["wilcoxon"].statistic
    (0.125, 10.0)
    """
    a, b = numbers(scores_a, "scores_a"), numbers(scores_b, "scores_b")
    if len(a) != len(b):
        raise ValueError(f"scores_b: expected {len(a)} scores as scores_a has, got {len(b)}")
    d = with_ties(a - b, 10)
    options: dict[str, Any] = {"alternative": alternative, "confidence": confidence}
    of_models, of_datasets = means_by(d, models), means_by(d, datasets)
    tests: dict[str, Callable[[], Test]] = {
        "shapiro": lambda: shapiro(d),
        "paired_t": lambda: paired_t(d, **options),
        "wilcoxon": lambda: wilcoxon(d, **options),
        "sign": lambda: sign_test(d, **options),
        "mixed_model": lambda: mixed_model(a, b, models, datasets, confidence=confidence),
        "per_model": lambda: paired_t(list(of_models.values()), **options),
        "per_dataset": lambda: paired_t(list(of_datasets.values()), **options),
        "two_way_t": lambda: two_way_t(d, models, datasets, **options),
        "leave_one_model_out": lambda: leave_one_out(d, models),
        "leave_one_dataset_out": lambda: leave_one_out(d, datasets),
        "cluster_bootstrap": lambda: cluster_bootstrap(
            d, models, datasets, seed=seed, confidence=confidence
        ),
    }
    varied = bool(d.min() < d.max())
    least = 1e-9 * np.abs(d).max()  # sums of decimals leave errors behind the last digits
    apart = {by: bool(np.ptp(list(means.values())) > least)
             for by, means in (("model", of_models), ("dataset", of_datasets))}  # fmt: skip
    possible = {
        "shapiro": varied and len(d) > 2,
        "paired_t": varied,
        "mixed_model": varied,
        "per_model": apart["model"],
        "per_dataset": apart["dataset"],
        "two_way_t": any(apart.values()),
        "leave_one_model_out": varied and len(of_models) > 2,
        "leave_one_dataset_out": varied and len(of_datasets) > 2,
        "cluster_bootstrap": min(len(of_models), len(of_datasets)) >= _LEVELS,
    }
    found = {name: run() for name, run in tests.items() if possible.get(name, True)}
    family = [name for name in _FAMILY if name in found]
    for name, p in zip(family, benjamini_hochberg([found[name].p for name in family]), strict=True):
        found[name] = replace(found[name], detail=found[name].detail | {"adjusted_p": float(p)})
    if varied:
        more = {"d": cohens_d(a, b), "differences": describe(d)}
        found["paired_t"] = replace(found["paired_t"], detail=found["paired_t"].detail | more)
    return found

"""The linear mixed model: scores of two methods with crossed models and data sets.

``score = intercept + effect of the method + model + data set + model on data set + residual``,
where all but the first two are normal and independent, with one variance each. The variances
maximise the restricted likelihood (REML), which is computed directly, with dense matrices: an
experiment has some hundred scores. Degrees of freedom are Satterthwaite's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recos._blocks import single_threaded_blas
from recos.evaluate._extras import load
from recos.evaluate.statistics.result import Test, check_options, labels, numbers

_FLAT = 1e-7  # changes of the criterion that are none


@dataclass(frozen=True, eq=False)
class Fit:
    """Variances and fixed effects at the maximum of the restricted likelihood."""

    variances: np.ndarray  # of each factor, then of the residual
    criterion: float  # minus twice the restricted log-likelihood
    effects: np.ndarray
    errors: np.ndarray  # of the effects
    freedom: np.ndarray  # Satterthwaite's degrees of freedom of the effects
    residuals: np.ndarray  # conditional, over their standard deviation


def mixed_model(
    scores_a: Any,
    scores_b: Any,
    models: Sequence[Any],
    datasets: Sequence[Any],
    *,
    confidence: float = 0.95,
) -> Test:
    """Test the effect of a method in a linear mixed model with crossed random effects.

    Parameters
    ----------
    scores_a, scores_b : array, shape (n,)
        Scores of two methods in the same settings; ``b`` is the baseline.
    models, datasets : sequence, length n
        The model and the data set of each setting. A factor that has one level, or is the same
        as another, is left out.
    confidence : float
        The share of intervals that are to hold the truth.

    Returns
    -------
    Test
        ``estimate`` is the effect of method a, ``p`` two-sided; ``detail`` holds the variances,
        both fixed effects, the REML criterion and the quartiles of the residuals.

    Examples
    --------
    >>> from recos.evaluate.statistics import mixed_model
    >>> a, b = [3.1, 4.2, 6.0, 7.4], [3.0, 4.0, 5.7, 7.3]
    >>> found = mixed_model(a, b, ["x", "x", "y", "y"], ["s", "t", "s", "t"])
    >>> found.estimate, found.statistic, found.detail["effects"]["method"]["df"]
    (0.175, 3.656, 3.0)
    """
    a, b = numbers(scores_a, "scores_a"), numbers(scores_b, "scores_b")
    if len(a) != len(b):
        raise ValueError(f"scores_b: expected {len(a)} scores as scores_a has, got {len(b)}")
    check_options(confidence)
    if np.ptp(a - b) <= 1e-12 * max(np.abs(a).max(), np.abs(b).max()):
        raise ValueError(
            "scores_a: expected gains over scores_b that differ between settings, got the same "
            f"{(a - b)[0]:g} in all"
        )
    y = np.concatenate([b, a])
    X = np.stack([np.ones(len(y)), np.repeat([0.0, 1.0], len(a))], axis=1)
    t = load("scipy.stats").t
    factors = _factors(models, datasets, len(a))
    with single_threaded_blas():  # the matrices are small
        fit = fit_reml(y, X, list(factors.values()))
    statistics = fit.effects / fit.errors
    effects = {
        name: {
            "estimate": float(fit.effects[i]),
            "error": float(fit.errors[i]),
            "df": float(fit.freedom[i]),
            "t": float(statistics[i]),
            "p": float(2 * t.sf(abs(statistics[i]), fit.freedom[i])),
        }
        for i, name in enumerate(("intercept", "method"))
    }
    method = effects["method"]
    half = float(t.ppf((1 + confidence) / 2, method["df"])) * method["error"]
    return Test(
        "linear mixed model",
        statistic=method["t"],
        p=method["p"],
        estimate=method["estimate"],
        low=method["estimate"] - half,
        high=method["estimate"] + half,
        n=len(y),
        assumes="normal effects and residuals; one gain for all settings, whatever the model and "
        "the data set, so where model x data set (or the only factor) has a variance above 0, its "
        "t is that of the paired t-test",
        detail={
            "confidence": confidence,
            "variances": dict(zip([*factors, "residual"], fit.variances.tolist(), strict=True)),
            "effects": effects,
            "reml_criterion": fit.criterion,
            "residuals": np.quantile(fit.residuals, [0, 0.25, 0.5, 0.75, 1]).tolist(),
        },
    )


def _factors(models: Sequence[Any], datasets: Sequence[Any], size: int) -> dict[str, np.ndarray]:
    """Return which level of each factor a score belongs to, for the baseline and the other."""
    _, model = labels(models, "models", size)
    _, dataset = labels(datasets, "datasets", size)
    setting = np.unique(model * (dataset.max() + 1) + dataset, return_inverse=True)[1]
    kept: dict[str, np.ndarray] = {}
    for name, level in {"model": model, "dataset": dataset, "model x dataset": setting}.items():
        if level.any() and not any(_alike(level, other) for other in kept.values()):
            kept[name] = level
    return {name: np.tile(level, 2) for name, level in kept.items()}


def _alike(level: np.ndarray, other: np.ndarray) -> bool:
    """Whether two factors put the same observations together, whatever they call the levels."""
    together = len(set(zip(level.tolist(), other.tolist(), strict=True)))
    return bool(together == level.max() + 1 == other.max() + 1)


def fit_reml(y: np.ndarray, X: np.ndarray, factors: list[np.ndarray]) -> Fit:
    """Fit a linear mixed model.

    Parameters
    ----------
    y : numpy.ndarray, shape (n,)
        What is explained.
    X : numpy.ndarray, shape (n, p)
        The columns of the fixed effects.
    factors : list of numpy.ndarray, shape (n,)
        The level of each random factor that an observation belongs to.

    Returns
    -------
    Fit
        The maximum of the restricted likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from recos.evaluate.statistics.mixed import fit_reml
    >>> y = np.array([1.0, 3.0, 4.0, 6.0, 8.0, 10.0])
    >>> fit_reml(y, np.ones((6, 1)), [np.array([0, 0, 1, 1, 2, 2])]).variances
    array([11.33333333,  2.        ])
    """
    grams = [(level[:, None] == level).astype(np.float64) for level in factors]
    ratios = np.zeros(len(grams))
    if grams:
        ratios = _best_ratios(y, X, grams)
    criterion = _criterion(ratios, y, X, grams)[0]
    P, C = _projection(ratios, X, grams)
    variance = float(y @ P @ y) / (len(y) - X.shape[1])
    variances = variance * np.append(ratios, 1.0)
    C, P = C * variance, P / variance
    effects = C @ X.T @ _inverse(variances, grams, len(y)) @ y
    return Fit(
        variances,
        criterion,
        effects,
        errors=np.sqrt(np.diag(C)),
        freedom=_satterthwaite(variances, y, X, grams, P, C),
        residuals=np.sqrt(variance) * (P @ y),
    )


def _best_ratios(y: np.ndarray, X: np.ndarray, grams: list[np.ndarray]) -> np.ndarray:
    """Return the variance of each factor over the residual's at the maximum."""
    optimize = load("scipy.optimize")
    near = optimize.minimize(
        lambda logs: _criterion(np.exp(logs), y, X, grams),
        np.zeros(len(grams)), jac=True, method="L-BFGS-B",
        bounds=[(-16.0, 23.0)] * len(grams),
    ).x  # fmt: skip
    ratios = np.exp(near)
    for i in range(len(ratios)):  # a variance that explains nothing is none
        without = np.where(np.arange(len(ratios)) == i, 0.0, ratios)
        if _criterion(without, y, X, grams)[0] < _criterion(ratios, y, X, grams)[0] + _FLAT:
            ratios = without
    there = ratios > 0
    grams = [gram for gram, kept in zip(grams, there, strict=True) if kept]
    if grams:  # the likelihood is flat at its top: go where its slope is zero
        found = optimize.root(lambda logs: _criterion(np.exp(logs), y, X, grams)[1], near[there])
        if found.success:
            ratios[there] = np.exp(found.x)
    best: np.ndarray = ratios
    return best


def _inverse(variances: np.ndarray, grams: list[np.ndarray], size: int) -> np.ndarray:
    """Return the inverse of the covariance of the observations."""
    V = variances[-1] * np.eye(size)
    for share, gram in zip(variances, grams, strict=False):
        V += share * gram
    inverse: np.ndarray = np.linalg.inv(V)
    return inverse


def _projection(
    ratios: np.ndarray, X: np.ndarray, grams: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return P = V⁻¹ - V⁻¹X (XᵀV⁻¹X)⁻¹ XᵀV⁻¹ and (XᵀV⁻¹X)⁻¹, V in units of the residual's."""
    inverse = _inverse(np.append(ratios, 1.0), grams, len(X))
    half = inverse @ X
    C = np.linalg.inv(X.T @ half)
    return inverse - half @ C @ half.T, C


def _criterion(
    ratios: np.ndarray, y: np.ndarray, X: np.ndarray, grams: list[np.ndarray]
) -> tuple[float, np.ndarray]:
    """Return minus twice the restricted log-likelihood, and its gradient by log ratios."""
    P, C = _projection(ratios, X, grams)
    free = len(y) - X.shape[1]
    pulled = P @ y
    variance = float(y @ pulled) / free
    V = np.eye(len(y)) + sum(share * gram for share, gram in zip(ratios, grams, strict=True))
    value = np.linalg.slogdet(V)[1] - np.linalg.slogdet(C)[1]
    value += free * (1 + np.log(2 * np.pi * variance))
    slopes = [(P * gram).sum() - pulled @ gram @ pulled / variance for gram in grams]
    return float(value), ratios * np.array(slopes)


def _satterthwaite(
    variances: np.ndarray,
    y: np.ndarray,
    X: np.ndarray,
    grams: list[np.ndarray],
    P: np.ndarray,
    C: np.ndarray,
) -> np.ndarray:
    """Return 2 c² / Var(c) of the variance c of each effect, by the curvature of the likelihood."""
    there = [gram for gram, share in zip(grams, variances, strict=False) if share > 0]
    there.append(np.eye(len(y)))
    pulled = P @ y
    projected = [P @ gram for gram in there]
    lifted = [gram @ pulled for gram in there]
    curvature = np.array([
        [2 * u @ P @ v - (p * q.T).sum() for q, v in zip(projected, lifted, strict=True)]
        for p, u in zip(projected, lifted, strict=True)
    ])  # fmt: skip
    half = _inverse(variances, grams, len(y)) @ X @ C
    slopes = np.array([np.diag(half.T @ gram @ half) for gram in there])
    spread = np.einsum("ki,kl,li->i", slopes, 2 * np.linalg.inv(curvature), slopes)
    freedom: np.ndarray = 2 * np.diag(C) ** 2 / spread
    return freedom

"""The four similarities: one numerator over four bounds.

Every similarity here is ``u · v`` divided by an upper bound of ``|u · v|``. The bounds form a
chain, so the similarities do too::

    |u · v|  <=  |u↑ · v↕|  <=  ‖u‖ ‖v‖  <=  ½ (‖u‖² + ‖v‖²)
                  recos          cos           decos

``u↑`` is ``u`` sorted ascending; ``v↕`` is ``v`` sorted ascending where ``u · v`` is positive and
descending where it is negative. Where ``u · v`` is 0, every similarity is 0.

A `Metric` is a name and its bound; everything else (all pairs, all array
libraries, all documentation) is derived from the registry `METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import (
    Array,
    Inputs,
    cast,
    check_finite,
    full_precision,
    has_float64,
    is_concrete,
    read,
    replaced,
)
from recos._blocks import Progress, run_blocks, spans
from recos._terms import Doubt, Terms, aligned, aligned_compiled, aligned_exactly, quiet

# Numbers that one block of work holds of each input.
_BLOCK_NUMBERS = 2**19
# From this many numbers on, compiled loops repay loading Numba.
_WORTH_COMPILING = 2**15


class Weights(NamedTuple):
    """A bound as a weighted sum of the bounds in the chain and the dot product itself."""

    rearrangement: float = 0.0
    cauchy_schwarz: float = 0.0
    mean_square: float = 0.0
    dot: float = 0.0


class Metric(NamedTuple):
    """A similarity: the dot product over the bound that ``weights`` make up."""

    name: str
    function: Callable[..., Array]
    weights: Weights
    bound: str
    one_when: str
    range: tuple[float, float]
    scale_invariant: bool
    formula: str
    reference: str

    @property
    def sorts(self) -> bool:
        """Whether the bound needs the vectors sorted."""
        return self.weights.rearrangement != 0


class Bounds(NamedTuple):
    """The chain ``|dot| <= rearrangement <= cauchy_schwarz <= mean_square``."""

    dot: Array
    rearrangement: Array
    cauchy_schwarz: Array
    mean_square: Array


def recos(u: Any, v: Any, /, *, axis: int = -1) -> Array:
    """Rearrangement similarity: the dot product over the rearrangement bound.

    ``recos(u, v) = u · v / |u↑ · v↕|``. It is 1 for vectors that order their components alike,
    -1 for vectors that order them oppositely, and never closer to 0 than the cosine.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    array, shape (...)
        Similarities in [-1, 1], of the array kind, device and floating family of the inputs.

    Examples
    --------
    >>> import recos
    >>> float(recos.recos([1, 5.5, 2, 4], [1, 8.5, 2, 4]))  # another scale, the same order
    1.0
    >>> float(recos.recos([2, 1], [-1, 0]))
    -1.0
    """
    return _similarity("recos", u, v, axis)


def cos(u: Any, v: Any, /, *, axis: int = -1) -> Array:
    """Cosine similarity: the dot product over the Cauchy-Schwarz bound.

    ``cos(u, v) = u · v / (‖u‖ ‖v‖)``. It is 1 for vectors that differ by a positive factor.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    array, shape (...)
        Similarities in [-1, 1], of the array kind, device and floating family of the inputs.

    Examples
    --------
    >>> import recos
    >>> round(float(recos.cos([1, 5.5, 2, 4], [1, 8.5, 2, 4])), 4)
    0.98
    """
    return _similarity("cos", u, v, axis)


def decos(u: Any, v: Any, /, *, axis: int = -1) -> Array:
    """Degenerated cosine: the dot product over the mean square of the norms.

    ``decos(u, v) = u · v / (½ (‖u‖² + ‖v‖²))``. It is 1 for equal vectors alone, and equals the
    cosine for vectors of the same length.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    array, shape (...)
        Similarities in [-1, 1], of the array kind, device and floating family of the inputs.

    Examples
    --------
    >>> import recos
    >>> round(float(recos.decos([1, 2, 3], [2, 4, 6])), 4)
    0.8
    """
    return _similarity("decos", u, v, axis)


def tanimoto(u: Any, v: Any, /, *, axis: int = -1) -> Array:
    """Tanimoto similarity: the dot product over what the two vectors do not share.

    ``tanimoto(u, v) = u · v / (‖u‖² + ‖v‖² - u · v)``. It ranks exactly as decos does:
    ``decos = 2 tanimoto / (1 + tanimoto)``.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    array, shape (...)
        Similarities in [-1/3, 1], of the array kind, device and floating family of the inputs.

    Examples
    --------
    >>> import recos
    >>> float(recos.tanimoto([1, 1, 0, 0], [0, 1, 1, 0]))  # one in three: the Jaccard index
    0.3333333333333333
    """
    return _similarity("tanimoto", u, v, axis)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="recos",
            function=recos,
            weights=Weights(rearrangement=1),
            bound="rearrangement",
            one_when="u · v > 0 and v orders its components as u does",
            range=(-1.0, 1.0),
            scale_invariant=True,
            formula="u · v / |u↑ · v↕|",
            reference="Ai, Beyond Cosine Similarity, arXiv:2602.05266",
        ),
        Metric(
            name="cos",
            function=cos,
            weights=Weights(cauchy_schwarz=1),
            bound="Cauchy-Schwarz",
            one_when="v = k u ≠ 0 with k > 0",
            range=(-1.0, 1.0),
            scale_invariant=True,
            formula="u · v / (‖u‖ ‖v‖)",
            reference="Salton, Wong and Yang, A vector space model for automatic indexing, 1975",
        ),
        Metric(
            name="decos",
            function=decos,
            weights=Weights(mean_square=1),
            bound="mean square",
            one_when="v = u ≠ 0",
            range=(-1.0, 1.0),
            scale_invariant=False,
            formula="u · v / (½ (‖u‖² + ‖v‖²))",
            reference="Ai, Beyond Cosine Similarity, arXiv:2602.05266",
        ),
        Metric(
            name="tanimoto",
            function=tanimoto,
            weights=Weights(mean_square=2, dot=-1),
            bound="union",
            one_when="v = u ≠ 0",
            range=(-1 / 3, 1.0),
            scale_invariant=False,
            formula="u · v / (‖u‖² + ‖v‖² - u · v)",
            reference="Tanimoto, An elementary mathematical theory of classification, 1958",
        ),
    )
}
"""The registry: every similarity by its name."""


def find_metric(metric: Any) -> Metric:
    """Return a registered metric by its name."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str) or metric not in METRICS:
        raise ValueError(f"metric: expected one of {', '.join(METRICS)}, got {metric!r}")
    return METRICS[metric]


def bounds(u: Any, v: Any, /, *, axis: int = -1) -> Bounds:
    """Return the dot product and the three bounds above it.

    ``|u · v| <= |u↑ · v↕| <= ‖u‖ ‖v‖ <= ½ (‖u‖² + ‖v‖²)``. Dividing the first by each of the others
    gives recos, cos and decos.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    Bounds
        Named tuple (dot, rearrangement, cauchy_schwarz, mean_square) of arrays of shape (...).
        Unlike the similarities they have a scale: products beyond the dtype's range are infinite.

    Examples
    --------
    >>> import recos
    >>> chain = recos.bounds([3.0, 4.0], [8.0, 6.0])
    >>> [float(bound) for bound in chain]
    [48.0, 50.0, 50.0, 62.5]
    """
    given = read(u, v, names=("u", "v"), axis=axis)
    xp = given.xp
    terms = _aligned_terms(given, *given.arrays, sorts=True)
    chain = [terms.dot]
    with quiet(xp, over="ignore", divide="ignore"):
        for bound in (Weights(1, 0, 0), Weights(0, 1, 0), Weights(0, 0, 1)):
            # Rounding must not break the chain.
            chain.append(xp.maximum(xp.abs(chain[-1]), _bound(xp, bound, terms)))
        return Bounds(*(given.give_back(x * terms.scale_u * terms.scale_v) for x in chain))


def _similarity(metric: str, u: Any, v: Any, axis: int) -> Array:
    given = read(u, v, names=("u", "v"), axis=axis)
    return given.give_back(aligned_scores(METRICS[metric], given))


def aligned_scores(
    metric: Metric, given: Inputs, progress: bool | None = False, *, compiled: bool = False
) -> Array:
    """Return the similarities of aligned vectors; large NumPy inputs go in blocks on threads.

    Large inputs are computed by compiled loops, and others where that is asked for.
    """
    u, v = given.arrays
    shape = np.broadcast_shapes(tuple(u.shape[:-1]), tuple(v.shape[:-1]))
    width = u.shape[-1]
    in_rows = len(shape) == 1 or u.shape == v.shape
    if given.xp is not np or not in_rows:
        return score_rows(metric, given, u, v)
    if not compiled and math.prod(shape) * width <= _WORTH_COMPILING:
        return score_rows(metric, given, u, v)
    u, v = u.reshape(-1, width), v.reshape(-1, width)
    out = np.empty(max(len(u), len(v)), given.dtype)

    def fill(rows: slice) -> None:
        block_u, block_v = (x[rows] if len(x) == len(out) else x for x in (u, v))
        out[rows] = score_rows(metric, given, block_u, block_v, rows.start, compiled=True)

    jobs = spans(len(out), max(1, _BLOCK_NUMBERS // width))
    run_blocks(fill, jobs, Progress(len(jobs), f"paired {metric.name}", progress))
    return out.reshape(shape)


def score_rows(
    metric: Metric,
    given: Inputs,
    u: Array,
    v: Array,
    first_row: int = 0,
    *,
    compiled: bool = False,
) -> Array:
    """Return the similarities of aligned vectors, doubtful ones computed exactly."""
    xp = given.xp
    terms = _aligned_terms(given, u, v, sorts=metric.sorts, first_row=first_row, compiled=compiled)
    scores = divide(xp, metric, terms)
    if not metric.sorts:
        return scores
    if xp is np:
        return _mended(metric, np.asarray(scores), terms, given.dtype, u, v)
    doubtful = doubtful_elsewhere(xp, terms, scores)
    if doubtful is None:
        return scores
    shape = (*scores.shape, u.shape[-1])
    u, v = (xp.broadcast_to(x, shape)[doubtful] for x in (u, v))
    return replaced(xp, scores, doubtful, in_float64(xp, metric, u, v, scores.dtype))


def doubtful_elsewhere(xp: Any, terms: Terms, scores: Array) -> Array | None:
    """Return which float32 scores of other libraries to compute again, None where there are none.

    Inside traced functions values cannot be looked at, and none are.
    """
    if not is_concrete(scores) or xp.finfo(scores.dtype).bits == 64 or not has_float64(xp, scores):
        return None
    doubtful = Doubt.of(np.float32, np.float32).pairs(xp, terms)
    return doubtful if bool(xp.any(doubtful)) else None


def in_float64(xp: Any, metric: Metric, u: Array, v: Array, dtype: Any) -> Array:
    """Return the similarities of aligned float32 rows, their terms summed in float64."""
    wide = (cast(xp, x, xp.float64) for x in (u, v))
    return cast(xp, divide(xp, metric, aligned(xp, *wide, sorts=metric.sorts)), dtype)


def exact_scores(metric: Metric, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the similarities of aligned NumPy rows in float64, whatever they are stored in."""
    terms = aligned_compiled(u, v, sorts=metric.sorts)
    scores = np.asarray(divide(np, metric, terms))
    return _mended(metric, scores, terms, np.float64, u, v) if metric.sorts else scores


def _mended(
    metric: Metric, scores: np.ndarray, terms: Terms, dtype: Any, u: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Return scores with those that rounding spoils computed exactly."""
    doubtful = Doubt.of(dtype, np.float64).pairs(np, terms)
    if doubtful.any():
        picked = [np.broadcast_to(x, (*scores.shape, x.shape[-1]))[doubtful] for x in (u, v)]
        scores[doubtful] = divide(np, metric, aligned_exactly(*picked))
    return scores


def _aligned_terms(
    given: Inputs,
    u: Array,
    v: Array,
    *,
    sorts: bool,
    first_row: int = 0,
    compiled: bool = False,
) -> Terms:
    xp = given.xp
    u, v = cast(xp, u, given.dtype), cast(xp, v, given.dtype)
    with full_precision(xp, u):
        terms = (aligned_compiled if compiled else partial(aligned, xp))(u, v, sorts=sorts)
    for name, scale in zip(given.names, (terms.scale_u, terms.scale_v), strict=True):
        check_finite(xp, scale, name, first_row)
    return terms


def divide(xp: Any, metric: Metric, terms: Terms) -> Array:
    """Return the similarity: the dot product over the metric's bound, 0 over 0 being 0."""
    with quiet(xp, over="ignore", divide="ignore"):  # lengths too far apart: the score is 0
        bound = _bound(xp, metric.weights, terms)
    quotient = terms.dot / xp.where(bound == 0, xp.ones_like(bound), bound)
    return xp.clip(quotient, *metric.range)


def _bound(xp: Any, weights: Weights, terms: Terms) -> Array:
    bound = weights.dot * terms.dot if weights.dot else xp.zeros_like(terms.dot)
    if weights.rearrangement:
        chosen = xp.abs(xp.where(terms.dot < 0, terms.down, terms.up))
        bound = bound + weights.rearrangement * chosen
    if weights.cauchy_schwarz:
        bound = bound + weights.cauchy_schwarz * terms.norm_u * terms.norm_v
    if weights.mean_square:
        ratio = terms.scale_u / terms.scale_v
        if xp is not np:  # the score is 0 where it overflows, but its gradient would be NaN
            ratio = xp.clip(ratio, 2.0**-60, 2.0**60)
        mean = (terms.norm_u**2 * ratio + terms.norm_v**2 / ratio) / 2
        bound = bound + weights.mean_square * mean
    return bound

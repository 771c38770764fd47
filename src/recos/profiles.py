"""Sorted rows in a few numbers: what bounds a similarity without sorting again.

The rearrangement bound of two unit rows is the product of their sorted selves, their *profiles*.
Profiles are quantile functions and nearly alike, so a few coordinates in a fitted basis hold most
of each, and the rest is bounded by its length::

    |u↑·v↑ - P(u)·P(v)| <= ρ(u) ρ(v)

Each vector of the basis is even or odd under reversal, so the same coordinates, the even ones with
the other sign, give the bound for negative products, u↑·v↓.

`Features` generalise this to every metric: its bound over ‖u‖ ‖v‖ is a sum of products of a few
numbers of each row. For the cosine that is 1; for decos, the norm and its reciprocal.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import check_finite
from recos._blocks import run_blocks, spans
from recos._terms import fold, scaled, sort_and_fold
from recos.metrics import Metric, Weights

_SAMPLE = 256  # rows that a basis is fitted to
_NUMBERS = {4: 2**20, 8: 2**18}  # that are described at a time, by their size
# What rounding can add to a product of profiles: of stored coordinates, and of each term of a sum.
_ROUNDING, _ROUNDING_OF_TERM = 2e-6, 2.0**-22
# Norms between which float32 products are as exact as their rounding says.
_SMALLEST, _LARGEST = 1e-25, 1e25


class Features(NamedTuple):
    """What is known of each of n rows.

    Attributes
    ----------
    over : (n,)
        1/‖v‖.
    error : (n,)
        How far a cosine may be off: infinite where nothing is known, 0 for rows of zeros.
    table : (n, r + 1)
        Coordinates, and the residual in the last column.
    """

    over: np.ndarray
    error: np.ndarray
    table: np.ndarray

    def residual(self, few: int) -> np.ndarray:
        """Return the residual that goes with the first few coordinates alone."""
        rest = self.table[:, few:].astype(np.float64)
        length: np.ndarray = np.sqrt((rest * rest).sum(axis=1)) * (1 + 2e-7)  # rounded up
        return length.astype(np.float32)


class Profiles(NamedTuple):
    """A basis for the sorted rows of some vectors, and how much of them it holds.

    Attributes
    ----------
    even, odd : (r, ceil(d / 2)), (r, floor(d / 2))
        Vectors of the basis in folded form: one of the two is 0.
    """

    even: np.ndarray
    odd: np.ndarray

    @property
    def rank(self) -> int:
        """How many coordinates a row has."""
        return len(self.even)

    @property
    def most(self) -> float:
        """How large the bound can be beside ‖u‖ ‖v‖."""
        return 1.0

    @property
    def signs(self) -> np.ndarray:
        """Return -1 for even and 1 for odd vectors of the basis: the signs for u↑·v↓."""
        return np.where(self.even.any(axis=1), -1.0, 1.0)

    @classmethod
    def fit(cls, X: np.ndarray, rank: int) -> Profiles:
        """Fit a basis to a sample of rows: the directions that hold most of their profiles.

        Parameters
        ----------
        X : array, shape (n, d)
            Rows; some of them, spread evenly, are looked at.
        rank : int
            How many coordinates to keep, at most d.

        Returns
        -------
        Profiles

        Examples
        --------
        >>> import numpy as np
        >>> from recos.profiles import Profiles
        >>> X = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
        >>> Profiles.fit(X, rank=8).transform(X).table.shape
        (500, 9)
        """
        some = _sample(X)
        some, norm = in_range(some)
        some, norm = some[np.isfinite(norm)], norm[np.isfinite(norm)]
        half, middle = divmod(X.shape[1], 2)
        lengths = [0.5**0.5] * half + [1.0] * middle, [0.5**0.5] * half  # of folded unit vectors
        basis = []
        for part, length in zip(fold(np, np.sort(some)), lengths, strict=True):
            unit = part * _reciprocal(norm)[:, None] * length
            basis.append(np.linalg.eigh(unit.T @ unit))  # what each direction holds, ascending
        held = [
            (-value, parity, i) for parity in (0, 1) for i, value in enumerate(basis[parity][0])
        ]
        best = sorted(held)[:rank]
        chosen = [np.zeros((len(best), len(length))) for length in lengths]
        for row, (_, parity, i) in enumerate(best):
            chosen[parity][row] = basis[parity][1][:, i] * lengths[parity]
        return cls(*chosen)

    def transform(self, X: np.ndarray) -> Features:
        """Return the features of rows.

        Parameters
        ----------
        X : array, shape (n, d)
            Rows, float32 or float64, contiguous.

        Returns
        -------
        Features
        """
        norm, features = _lengths(X, self.rank)
        X, norm = in_range(X, norm)
        coordinates = _coordinates(X, self.even, self.odd)
        table = features.table
        np.multiply(coordinates, _reciprocal(norm)[:, None], out=table[:, :-1], casting="same_kind")
        rest = np.maximum(0, 1 - np.vecdot(table[:, :-1], table[:, :-1], dtype=np.float64))
        table[:, -1] = np.sqrt(rest + self._rounding(X))
        table[norm == 0, -1] = 0  # nothing is left of a row of zeros
        return features

    def _rounding(self, X: np.ndarray) -> float:
        """Return how far the rounding of coordinates can put a product of profiles off.

        Each is half a row's sum of products in the dtype of the rows, in any order. What is left of
        a row is off by twice the length of their errors, and the product by that of both rows.
        """
        unit = float(np.finfo(X.dtype).eps) / 2
        coordinate = (X.shape[1] / 2 + 4) * unit / (1 - X.shape[1] * unit)
        return float(_ROUNDING + _ROUNDING_OF_TERM * self.rank + 4.2 * coordinate * self.rank**0.5)

    def as_queries(self, features: Features) -> tuple[np.ndarray, np.ndarray]:
        """Return what the features of rows are multiplied with: for u↑·v↑ and for -u↑·v↓."""
        table = features.table
        return table, table * np.append(self.signs, 1.0).astype(np.float32)


class Norms(NamedTuple):
    """The features of metrics that do not sort: 1, ‖v‖ and 1/‖v‖, in units of a typical norm."""

    weights: Weights
    middle: float

    @property
    def rank(self) -> int:
        """How many numbers a row has."""
        return 3

    @property
    def most(self) -> float:
        """How large the bound can be beside ‖u‖ ‖v‖."""
        return np.inf

    @classmethod
    def fit(cls, X: np.ndarray, weights: Weights) -> Norms:
        """Take the typical norm from a sample of rows."""
        norm = _norms(_sample(X))
        norm = norm[(norm > 0) & np.isfinite(norm)]
        return cls(weights, float(np.median(norm)) if len(norm) else 1.0)

    def transform(self, X: np.ndarray) -> Features:
        """Return the features of rows, shape (n, d)."""
        norm, features = _lengths(X, self.rank)
        table = features.table
        table[:] = 1
        if self.weights.mean_square:
            length = np.clip(norm / self.middle, 1e-18, 1e18)
            table[:, 1], table[:, 2] = length, 1 / length
            features.error[(length != norm / self.middle) & (features.error > 0)] = np.inf
        # Their rounding is relative: the product of residuals must exceed that of the sums.
        table[:, -1] = 1e-3 * table[:, :-1].sum(axis=1)
        return features

    def as_queries(self, features: Features) -> tuple[np.ndarray, np.ndarray]:
        """Return what the features of rows are multiplied with: ‖u‖ meets 1/‖v‖."""
        table, half = features.table, self.weights.mean_square / 2
        weights = np.array([self.weights.cauchy_schwarz, half, half, max(1.0, 2 * half)])
        queries = table[:, [0, 2, 1, 3]] * weights.astype(np.float32)
        if half:
            queries[np.isinf(features.error), -1] = 1e30  # of an unknown length anything may be
        return queries, queries


def fit(metric: Metric, X: np.ndarray, rank: int) -> Profiles | Norms:
    """Return what gives the features of rows for a metric."""
    return Profiles.fit(X, rank) if metric.sorts else Norms.fit(X, metric.weights)


def choose_rank(width: int, itemsize: int) -> int:
    """Return how many coordinates to keep: what is known takes at most 6 % of the room of a row.

    That is the coordinates, the residual, the norm, the error and an id. Narrow rows need 8
    coordinates all the same: with fewer, too little is ruled out.
    """
    return min(width, max(8, min(32, int(0.058 * width * itemsize / 4) - 5)))


def describe(
    shape: Profiles | Norms,
    X: Any,
    dtype: np.dtype,
    *,
    name: str,
    first: int = 0,
    out: np.ndarray | None = None,
) -> Features:
    """Return the features of many rows, on threads; raise for the first that is not finite.

    Rows are read as ``dtype``, and copied to ``out`` on the way where it is given.
    """

    def work(part: slice) -> Features:
        if out is not None:
            out[part] = X[part]
        rows = np.ascontiguousarray((X if out is None else out)[part], dtype)
        features = shape.transform(rows)
        odd = np.flatnonzero(np.isinf(features.error))
        if len(odd):
            scale = np.ones(len(rows))
            scale[odd] = np.abs(rows[odd]).max(axis=1)
            check_finite(np, scale, name, first + part.start)
        return features

    return join(
        run_blocks(work, spans(len(X), max(16, _NUMBERS[np.dtype(dtype).itemsize] // X.shape[1])))
    )


def join(parts: list[Features]) -> Features:
    """Return the features of several blocks of rows as one."""
    return Features(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def _sample(X: np.ndarray) -> np.ndarray:
    some = np.asarray(X[:: max(1, len(X) // _SAMPLE)][:_SAMPLE])
    return np.ascontiguousarray(some, np.float64 if some.dtype.itemsize == 8 else np.float32)


def _norms(X: np.ndarray) -> np.ndarray:
    from recos._kernels import sums  # noqa: PLC0415 - loads Numba

    squares = np.empty(len(X))
    sums.squares(X, squares)
    return np.sqrt(squares)


def in_range(X: np.ndarray, norm: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, divided by powers of two where their sums do not fit, and their norms."""
    norm = _norms(X) if norm is None else norm
    if not ((norm > _SMALLEST) & (norm < _LARGEST)).all():
        X = scaled(np, X, X.dtype)[0]
        norm = _norms(X)
    return X, norm


def _reciprocal(norm: np.ndarray) -> np.ndarray:
    over: np.ndarray = np.divide(1, norm, where=norm > 0, out=np.zeros_like(norm))
    return over


def _lengths(X: np.ndarray, rank: int) -> tuple[np.ndarray, Features]:
    """Return the norms of rows, and features whose table is still empty."""
    norm = _norms(X)
    zero = norm == 0
    zero[zero] = ~X[zero].any(axis=1)  # squares of float64 may vanish
    known = zero | ((norm > _SMALLEST) & (norm < _LARGEST))
    # The worst case of a float32 sum of products, and of what is rounded before and after it.
    rounding = (X.shape[1] + 16) * 2.0**-24
    worst = rounding / (1 - rounding) if rounding < 1 else np.inf
    error = np.where(zero, 0, np.where(known, worst, np.inf)).astype(np.float32)
    over = np.where(known, _reciprocal(norm), 0).astype(np.float32)
    return norm, Features(over, error, np.zeros((len(X), rank + 1), np.float32))


def _coordinates(X: np.ndarray, even: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Return the products of sorted rows with the vectors of a basis, in the dtype of the rows."""
    from recos._kernels import sorting  # noqa: PLC0415 - loads Numba

    if sorting.fits_lanes(X):
        has_even, has_odd = even.any(axis=1), odd.any(axis=1)
        made = sorting.coordinates(X, even[has_even], odd[has_odd])
        both = np.zeros((len(X), len(even)), np.float32)
        both[:, has_even] = made[:, : has_even.sum()]
        both[:, has_odd] += made[:, has_even.sum() :]
        return both
    folded_even, folded_odd = sort_and_fold(X, _room(X))
    found: np.ndarray = folded_even @ even.T.astype(X.dtype) + folded_odd @ odd.T.astype(X.dtype)
    return found


_rooms = threading.local()


def _room(X: np.ndarray) -> np.ndarray:
    """Return memory like X, used again in each thread: new pages cost more than sorting."""
    room: np.ndarray | None = getattr(_rooms, "numbers", None)
    if room is None or room.nbytes < X.nbytes:
        room = _rooms.numbers = np.empty(X.nbytes, np.uint8)
    return room[: X.nbytes].view(X.dtype).reshape(X.shape)

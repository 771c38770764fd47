"""Changes of vectors before they are compared: centring, whitening, ranks, and chains of them.

Each is learnt from a corpus by ``fit`` and used by ``transform``, as scikit-learn's estimators are:
they go into its pipelines, and `find_transform` knows them by name. With them

==========================  =====================================
Pearson correlation         `RowCenter`, then the cosine
recor                       `RowCenter`, then recos
Spearman correlation        `Rank`, then `RowCenter`, then the cosine
==========================  =====================================

Sums are made in float64, and what comes in as float32 goes out as float32.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from recos._arrays import Array, Inputs, check_finite, on_host, read
from recos._blocks import spans

_NUMBERS = 2**22  # that are read as float64 at a time


class Transform:
    """What all transforms share: parameters, checks, and the form in which they are stored.

    A subclass names the arrays it learns (``_learnt``), learns them (``_learn``) and uses them
    (``_apply``). Without arrays it needs no fit.
    """

    _learnt: ClassVar[tuple[str, ...]] = ()
    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of a corpus.

        Parameters
        ----------
        X : array, shape (n, d)
            Rows such as those to be transformed: the corpus, not the pairs of a test.
        y : object, optional
            Not used.

        Returns
        -------
        Transform
            Itself.
        """
        rows = self._read(X).arrays[0]
        if not len(rows):
            raise ValueError("X: expected at least one row to learn from, got none")
        return self._fit(rows)

    def transform(self, X: Any) -> Array:
        """Return rows transformed.

        Parameters
        ----------
        X : array, shape (n, d)
            Rows as wide as those that were learnt from.

        Returns
        -------
        array, shape (n, d)
            Of the array kind, device and floating family of X.
        """
        self._check_fitted()
        given = self._read(X)
        self._check_width(given.arrays[0])
        return given.give_back(self._apply(given.arrays[0]))

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Return the rows that were learnt from, transformed; see `fit` and `transform`."""
        return self.fit(X, y).transform(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that it was made with."""
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Change arguments that it was made with, and return itself."""
        for name, value in params.items():
            if name not in _parameters(type(self)):
                known = ", ".join(_parameters(type(self))) or "none"
                raise ValueError(f"{type(self).__name__}: expected parameters {known}, got {name}")
            setattr(self, name, value)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` makes the same transform of: JSON values and arrays."""
        self._check_fitted()
        name = type(self).__name__.lower()
        if TRANSFORMS.get(name) is not type(self):
            raise _unknown(self)
        state = {name: getattr(self, name) for name in self._learnt}
        return {
            "name": name,
            "params": {
                key: int(value) if isinstance(value, np.integer) else value
                for key, value in self.get_params().items()
            },
            "width": getattr(self, "n_features_in_", None),
            "state": state,
        }

    @staticmethod
    def from_dict(stored: dict[str, Any]) -> Transform:
        """Return the transform that `to_dict` gave."""
        made: Transform
        if stored["name"] == "chain":
            steps = [Transform.from_dict(step) for step in stored["state"]["steps_"]]
            made, state = Chain(steps), {"steps_": steps}
        else:
            made, state = find_transform(stored["name"], **stored["params"]), stored["state"]
        vars(made).update(state)
        if stored["width"] is not None:
            made.n_features_in_ = stored["width"]
        return made

    def __repr__(self) -> str:
        """Return how it was made."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks, which has been loaded then."""
        from sklearn.utils import Tags, TargetTags, TransformerTags  # noqa: PLC0415

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
            requires_fit=not unfitted(self).fitted,
        )

    @property
    def fitted(self) -> bool:
        """Whether it can be used: it has learnt, or has nothing to learn."""
        return not self._learnt or hasattr(self, "n_features_in_")

    def _fit(self, rows: np.ndarray) -> Self:
        self.n_features_in_ = rows.shape[1]
        self._learn(rows)
        return self

    def _learn(self, rows: np.ndarray) -> None:
        pass

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        """Return finite float32 or float64 rows transformed; nothing is checked."""
        raise NotImplementedError

    def _read(self, X: Any) -> Inputs:
        """Return a finite matrix as a NumPy array of the dtype to compute in.

        The words of some errors are those that scikit-learn's checks look for.
        """
        if hasattr(X, "tocsr"):
            raise TypeError(f"X: expected a dense array, got a sparse {type(X).__name__}")
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        if kind == "c":
            raise ValueError(f"X: Complex data not supported, expected real numbers, got {X.dtype}")
        if kind == "O":  # numbers all the same, it may be
            X = np.asarray(X, np.float64)
        if isinstance(X, np.ndarray) and X.shape[-1:] == (0,):
            raise ValueError(f"X: 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        given = on_host(read(X, names=("X",)))
        rows = given.arrays[0]
        if rows.ndim != 2:
            raise ValueError(
                f"X: expected a matrix of shape (rows, components), got shape {rows.shape}. "
                "Reshape your data: a single vector v is the matrix v[None, :]"
            )
        rows = rows.astype(given.dtype, copy=False)
        check_finite(np, np.where(np.isfinite(rows).all(axis=1), 1.0, np.nan), "X")
        return given._replace(arrays=(rows,))

    def _check_width(self, rows: np.ndarray) -> None:
        width = getattr(self, "n_features_in_", rows.shape[1])
        if rows.shape[1] != width:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {width} "
                "features as input: transform vectors that the same model made"
            )

    def _check_fitted(self) -> None:
        if not self.fitted:
            known = sys.modules.get("sklearn.exceptions")
            kind = known.NotFittedError if known else ValueError
            raise kind(
                f"{type(self).__name__}: expected a transform that has learnt from a corpus, got "
                "one that has not; call fit(corpus) first"
            )


class Center(Transform):
    """Subtract the mean of a corpus: ``v - μ``.

    On crowded embeddings, whose rows all point the same way, it often gains more than any
    similarity.

    Examples
    --------
    >>> from recos.transforms import Center
    >>> Center().fit_transform([[1.0, 4.0], [3.0, 8.0]])
    array([[-1., -2.],
           [ 1.,  2.]])
    """

    _learnt = ("mean_",)
    mean_: np.ndarray

    def _learn(self, rows: np.ndarray) -> None:
        self.mean_ = rows.mean(axis=0, dtype=np.float64)

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        centred: np.ndarray = rows - self.mean_.astype(rows.dtype)
        return centred


class Standardize(Transform):
    """Subtract the mean and divide by the standard deviation of each component: ``(v - μ) / σ``.

    Components that never change become 0.

    Examples
    --------
    >>> from recos.transforms import Standardize
    >>> Standardize().fit_transform([[1.0, 4.0, 7.0], [3.0, 8.0, 7.0]])
    array([[-1., -1.,  0.],
           [ 1.,  1.,  0.]])
    """

    _learnt = ("mean_", "scale_")
    mean_: np.ndarray
    scale_: np.ndarray

    def _learn(self, rows: np.ndarray) -> None:
        self.mean_ = rows.mean(axis=0, dtype=np.float64)
        squares = sum(np.square(rows[part] - self.mean_).sum(axis=0) for part in _parts(rows))
        variance = np.asarray(squares) / len(rows)
        least = _rounding(rows) * np.square(np.abs(rows).max(axis=0).astype(np.float64))
        self.scale_ = np.where(variance > least, np.sqrt(variance), np.inf)

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        centred: np.ndarray = rows - self.mean_.astype(rows.dtype)
        centred /= self.scale_.astype(rows.dtype)
        return centred


class RemoveTop(Transform):
    """Subtract the mean, and what lies along the k directions of largest variance.

    ``w - Σᵢ (w·pᵢ) pᵢ`` with ``w = v - μ`` and the first k principal directions ``pᵢ`` (Mu and
    Viswanath, *All-but-the-Top*, 2018).

    Parameters
    ----------
    k : int
        How many directions to remove.

    Examples
    --------
    >>> import numpy as np
    >>> from recos.transforms import RemoveTop
    >>> X = np.array([[9.0, 1.0], [-9.0, 1.0], [0.0, -1.0], [0.0, -1.0]])
    >>> np.round(RemoveTop(k=1).fit_transform(X), 6) + 0.0
    array([[ 0.,  1.],
           [ 0.,  1.],
           [ 0., -1.],
           [ 0., -1.]])
    """

    _learnt = ("mean_", "directions_")
    mean_: np.ndarray
    directions_: np.ndarray

    def __init__(self, k: int = 1) -> None:
        self.k = k

    def _learn(self, rows: np.ndarray) -> None:
        k = _read_count(self.k, "k")
        if rows.shape[1] <= k:
            raise ValueError(
                f"X: expected more components than k = {k}, got n_features = {rows.shape[1]}"
            )
        self.mean_, _, vectors = _principal(rows)
        self.directions_ = vectors[:, :k].T

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        centred: np.ndarray = rows - self.mean_.astype(rows.dtype)
        directions = self.directions_.astype(rows.dtype)
        centred -= (centred @ directions.T) @ directions
        return centred


class Whiten(Transform):
    """Subtract the mean and give every direction the same variance: ``(v - μ) Σ^(-1/2)``.

    Directions in which the corpus does not vary become 0. Learn it from many more rows than there
    are components: directions that hold only chance are made as large as the others.

    Parameters
    ----------
    components : int, optional
        Keep only the leading principal directions, as coordinates. By default all are kept and the
        axes stay as near to those of X as they can (ZCA), which matters to recos alone.

    Examples
    --------
    >>> import numpy as np
    >>> from recos.transforms import Whiten
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)) @ [[1, 2, 0], [0, 1, 3], [0, 0, 5]]
    >>> white = Whiten().fit_transform(X)
    >>> np.abs(np.cov(white.T, bias=True) - np.eye(3)).max() < 1e-9
    np.True_
    """

    _learnt = ("mean_", "matrix_")
    mean_: np.ndarray
    matrix_: np.ndarray

    def __init__(self, components: int | None = None) -> None:
        self.components = components

    def _learn(self, rows: np.ndarray) -> None:
        width = rows.shape[1]
        count = width if self.components is None else _read_count(self.components, "components")
        if count > width:
            raise ValueError(f"components: expected at most n_features = {width}, got {count}")
        self.mean_, variance, vectors = _principal(rows)
        energy = variance.sum() + self.mean_ @ self.mean_
        varies = variance > _rounding(rows) * width * energy
        scale = np.divide(1, np.sqrt(np.abs(variance)), where=varies, out=np.zeros(width))
        white = vectors * scale
        self.matrix_ = white @ vectors.T if self.components is None else white[:, :count]

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        centred = rows - self.mean_.astype(rows.dtype)
        white: np.ndarray = centred @ self.matrix_.astype(rows.dtype)
        return white


class RowCenter(Transform):
    """Subtract from each row the mean of its own components.

    The cosine becomes the Pearson correlation, and recos the author's recor.

    Examples
    --------
    >>> from recos.transforms import RowCenter
    >>> RowCenter().fit_transform([[1.0, 2.0, 6.0]])
    array([[-2., -1.,  3.]])
    """

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        means = rows.mean(axis=1, keepdims=True, dtype=np.float64)
        centred: np.ndarray = (rows - means).astype(rows.dtype, copy=False)
        return centred


class Rank(Transform):
    """Put the rank of each component within its row in its place; ties share their mean rank.

    Examples
    --------
    >>> from recos.transforms import Rank
    >>> Rank().fit_transform([[7.0, 2.0, 2.0, -1.0]])
    array([[4. , 2.5, 2.5, 1. ]])
    """

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        width, ranks = rows.shape[1], np.empty_like(rows)
        for part in _parts(rows):
            order = np.argsort(rows[part], axis=1)
            ascending = np.take_along_axis(rows[part], order, axis=1)
            first = np.ones(ascending.shape, bool)  # of a group of equal numbers
            first[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
            starts = np.flatnonzero(first)
            sizes = np.diff(np.append(starts, first.size))
            mean = np.repeat(starts % width + (sizes + 1) / 2, sizes).reshape(first.shape)
            np.put_along_axis(ranks[part], order, mean.astype(rows.dtype), axis=1)
        return ranks


class Chain(Transform):
    """Several transforms, one after the other; each learns from what those before it give.

    Parameters
    ----------
    steps : sequence of Transform or str
        The transforms, first to last. They are left as they are: what was learnt is in ``steps_``.

    Examples
    --------
    >>> from recos.transforms import Chain, Rank, RowCenter
    >>> Chain([Rank(), RowCenter()]).fit_transform([[7.0, 2.0, 2.0, -1.0]])
    array([[ 1.5,  0. ,  0. , -1.5]])
    """

    _learnt = ("steps_",)
    steps_: list[Transform]

    def __init__(self, steps: Sequence[Transform | str]) -> None:
        self.steps = steps

    def _learn(self, rows: np.ndarray) -> None:
        steps = [unfitted(step) for step in self.steps]
        for step in steps:
            rows = step._fit(rows)._apply(rows)
        self.steps_ = steps

    def _apply(self, rows: np.ndarray) -> np.ndarray:
        for step in self.steps_ if hasattr(self, "steps_") else map(find_transform, self.steps):
            rows = step._apply(rows)
        return rows

    @property
    def fitted(self) -> bool:
        """Whether it can be used: every step has learnt, or has nothing to learn."""
        return hasattr(self, "steps_") or not any(find_transform(x)._learnt for x in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` makes the same transform of: JSON values and arrays."""
        self._check_fitted()
        if type(self) is not Chain:
            raise _unknown(self)
        steps = self.steps_ if hasattr(self, "steps_") else map(find_transform, self.steps)
        return {
            "name": "chain",
            "params": {},
            "width": getattr(self, "n_features_in_", None),
            "state": {"steps_": [step.to_dict() for step in steps]},
        }


TRANSFORMS: dict[str, type[Transform]] = {
    "center": Center,
    "standardize": Standardize,
    "removetop": RemoveTop,
    "whiten": Whiten,
    "rowcenter": RowCenter,
    "rank": Rank,
}


def find_transform(name: str | Transform, /, **params: Any) -> Transform:
    """Return a transform by its name, or itself.

    Parameters
    ----------
    name : str or Transform
        ``center``, ``standardize``, ``removetop``, ``whiten``, ``rowcenter`` or ``rank``, or
        several with ``+`` between them, first to last.
    **params
        Arguments of a single transform, such as ``k=2``.

    Returns
    -------
    Transform

    Examples
    --------
    >>> from recos.transforms import find_transform
    >>> find_transform("removetop", k=2), find_transform("rank+rowcenter")
    (RemoveTop(k=2), Chain(steps=[Rank(), RowCenter()]))
    """
    if isinstance(name, Transform):
        return name
    names = str(name).split("+")
    for one in names:
        if one not in TRANSFORMS:
            raise ValueError(f"transform: expected one of {', '.join(TRANSFORMS)}, got {one!r}")
    if len(names) > 1:
        return Chain([TRANSFORMS[one]() for one in names])
    return TRANSFORMS[names[0]](**params)


def unfitted(transform: str | Transform) -> Transform:
    """Return a transform made with the same arguments that has learnt nothing."""
    given = find_transform(transform)
    return type(given)(**given.get_params())


def _unknown(transform: Transform) -> TypeError:
    return TypeError(
        f"transform: expected one of recos's own to store ({', '.join(TRANSFORMS)}, or a Chain of "
        f"them), got {type(transform).__name__}, which could not be made again from its values; "
        "transform the rows before they are added, and queries before they are asked for"
    )


def _parameters(kind: type[Transform]) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs")]


def _read_count(count: Any, name: str) -> int:
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {count!r}")
    return int(count)


def _parts(rows: np.ndarray) -> list[slice]:
    return spans(len(rows), max(1, _NUMBERS // max(1, rows.shape[1])))


def _rounding(rows: np.ndarray) -> float:
    """Return what rounding leaves of a variance, beside the mean square of the numbers."""
    return float(max(np.finfo(rows.dtype).eps ** 2, 4 * np.finfo(np.float64).eps))


def _principal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the variances from the largest down, and their directions as columns."""
    if len(rows) < 2:
        raise ValueError("X: expected at least two rows to learn directions from, got 1 sample")
    mean = rows.mean(axis=0, dtype=np.float64)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for part in _parts(rows):
        centred = rows[part] - mean
        total += centred.T @ centred
    variance, vectors = np.linalg.eigh(total / len(rows))
    variance, vectors = np.maximum(variance[::-1], 0), vectors[:, ::-1]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return mean, variance, vectors * np.sign(largest)  # one of the two signs, always the same

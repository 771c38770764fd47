"""Variants: a similarity, and the transforms before it, by one name such as ``center+cos``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from recos._blocks import spans
from recos.metrics import METRICS
from recos.pairs import paired
from recos.search import topk
from recos.transforms import TRANSFORMS, Transform, find_transform, is_transform

ALIASES = {
    "recor": "rowcenter+recos",
    "pearson": "rowcenter+cos",
    "spearman": "rank+rowcenter+cos",
}
SETS = {
    "default": (
        "cos", "recos", "decos", "center+cos", "center+recos", "standardize+cos",
        "removetop+cos", "whiten+cos",
    ),
    "paper": ("decos", "cos", "recos"),
}  # fmt: skip
_NUMBERS = 2**21  # of each side that are compared at a time


def _dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...i,...i->...", u, v))


def _euclidean(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(-np.linalg.norm(u - v, axis=-1))


def _manhattan(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(-np.abs(u - v).sum(axis=-1))


# What is no quotient of a bound; distances with a minus, so that larger is more similar.
_OTHERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "dot": _dot,
    "euclidean": _euclidean,
    "manhattan": _manhattan,
}


class Variant(NamedTuple):
    """A similarity of transformed vectors; ``chain`` names the transforms, first to last."""

    name: str
    chain: str
    metric: str

    @property
    def needs_corpus(self) -> bool:
        """Whether a transform learns from a corpus."""
        return bool(self.chain) and not find_transform(self.chain).fitted

    def paired(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the similarity of aligned rows, float64, shape (n,)."""
        if self.metric in METRICS:
            return np.asarray(paired(u, v, metric=self.metric, progress=False), np.float64)
        out = np.empty(len(u))
        for rows in _parts(u):
            out[rows] = _OTHERS[self.metric](*(x[rows].astype(np.float64) for x in (u, v)))
        return out

    def best(self, queries: np.ndarray, corpus: np.ndarray, k: int) -> np.ndarray:
        """Return the rows of the corpus that are most similar to each query, shape (n, k)."""
        if self.metric in METRICS:
            return np.asarray(topk(queries, corpus, k, metric=self.metric, progress=False).indices)
        found = []
        for query in queries.astype(np.float64):
            scores = np.empty(len(corpus))
            for rows in _parts(corpus):
                scores[rows] = _OTHERS[self.metric](query, corpus[rows].astype(np.float64))
            found.append(np.argsort(-scores, kind="stable")[:k])
        return np.array(found)


def find_variants(names: str | Iterable[str]) -> list[Variant]:
    """Return variants by their names.

    Parameters
    ----------
    names : str or iterable of str
        ``metric``, or ``transform+metric`` with one or more transforms; ``recor``, ``pearson`` and
        ``spearman``; or a set of them: ``default`` or ``paper``.

    Returns
    -------
    list of Variant
        Each once, in the order asked for.

    Examples
    --------
    >>> find_variants(["cos", "pearson"])
    [Variant(name='cos', chain='', metric='cos'),
     Variant(name='pearson', chain='rowcenter', metric='cos')]
    """
    names = [names] if isinstance(names, str) else names
    names = [name.strip().lower() for name in names]
    flat = [one for name in names for one in SETS.get(name, (name,))]
    return [_find(name) for name in dict.fromkeys(flat)]


def _find(name: str) -> Variant:
    chain, _, metric = ALIASES.get(name, name).rpartition("+")
    metrics = (*METRICS, *_OTHERS)
    unknown = [step for step in chain.split("+") if chain and not is_transform(step)]
    if metric not in metrics or unknown:
        raise ValueError(
            f"variants: expected one of {', '.join(metrics)}, perhaps behind transforms "
            f"({', '.join(TRANSFORMS)}, removetop2) as in center+cos, or "
            f"{', '.join([*ALIASES, *SETS])}, got {name!r}"
        )
    return Variant(name, chain, metric)


class Transformed:
    """Vectors under each chain of transforms, fitted once on the rows of a corpus."""

    def __init__(self, corpus: np.ndarray | None) -> None:
        self.corpus = corpus
        self._fitted: dict[str, Transform] = {}

    def of(self, chain: str, *arrays: np.ndarray) -> list[np.ndarray]:
        """Return arrays of rows as a chain changes them."""
        if not chain:
            return list(arrays)
        if chain not in self._fitted:
            transform = find_transform(chain)
            self._fitted[chain] = transform if transform.fitted else transform.fit(self.corpus)
        return [np.asarray(self._fitted[chain].transform(rows)) for rows in arrays]


def _parts(rows: Any) -> list[slice]:
    return spans(len(rows), max(1, _NUMBERS // max(1, rows.shape[1])))

"""Engines that propose rows: the protocol that `recos.candidates` asks, for faiss and usearch."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np

from recos._arrays import check_finite, on_host
from recos._blocks import run_blocks, spans
from recos._tiles import read_matrices
from recos.profiles import in_range

_NUMBERS = 2**18  # that are divided at a time


class Engine(Protocol):
    """What proposes rows: any object with these three."""

    @property
    def exact(self) -> bool:
        """Whether it proposes the rows with the largest inner products, in float32 or better."""

    def __len__(self) -> int:
        """Return how many rows it holds."""

    def propose(self, queries: np.ndarray, count: int) -> np.ndarray:
        """Return row numbers, the best first, shape (n, count); -1 where there are fewer.

        ``queries`` are unit rows, float32, shape (n, d), or zero.
        """


class FaissEngine:
    """A faiss index that compares by the inner product.

    Parameters
    ----------
    index : faiss.Index
        Its ids are row numbers.
    exact : bool, optional
        Whether it visits all rows, in float32. By default that is so for a flat index alone; an IVF
        index that probes all its lists may say so too.

    Examples
    --------
    >>> import numpy as np
    >>> from recos import candidates, engines
    >>> X = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    >>> folded = candidates.fold(X)
    >>> engine = engines.FaissEngine.build(folded.rows, "HNSW32")  # doctest: +SKIP
    >>> candidates.search(X[:5], folded, engine, k=3).indices[:, 0]  # doctest: +SKIP
    array([0, 1, 2, 3, 4])
    """

    def __init__(self, index: Any, *, exact: bool | None = None) -> None:
        faiss = _load("faiss", "faiss")
        if index.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError(
                "index: expected one that compares by the inner product, got metric_type "
                f"{index.metric_type}; make it with faiss.METRIC_INNER_PRODUCT"
            )
        flat = isinstance(faiss.downcast_index(index), faiss.IndexFlat)
        self.index, self.exact = index, flat if exact is None else exact

    @classmethod
    def build(cls, rows: np.ndarray, factory: str = "Flat") -> FaissEngine:
        """Make an index of rows from faiss's own description of it, and train it on them.

        Parameters
        ----------
        rows : array of float32, shape (n, d)
            The rows of folded vectors.
        factory : str
            Such as ``"Flat"``, ``"HNSW32"``, ``"IVF1024,Flat"`` or ``"IVF1024,PQ32x4fs,RFlat"``.
        """
        faiss = _load("faiss", "faiss")
        index = faiss.index_factory(rows.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(rows)
        index.add(rows)
        return cls(index)

    def __len__(self) -> int:
        """Return how many rows the index holds."""
        return int(self.index.ntotal)

    def propose(self, queries: np.ndarray, count: int) -> np.ndarray:
        """Return the rows with the largest inner products that the index finds."""
        found: np.ndarray = self.index.search(queries, count)[1]
        return found


class UsearchEngine:
    """A usearch index that compares by the inner product, or by recos itself.

    Parameters
    ----------
    index : usearch.index.Index
        Its keys are row numbers.
    exact : bool
        Whether to visit all rows rather than to follow the graph. Needs ``dtype="f32"``.

    Examples
    --------
    >>> import numpy as np
    >>> from recos import candidates, engines
    >>> X = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    >>> engine = engines.UsearchEngine.build_recos(X)  # doctest: +SKIP
    >>> candidates.search(X[:5], X, engine, k=3).indices[:, 0]  # doctest: +SKIP
    array([0, 1, 2, 3, 4])
    """

    def __init__(self, index: Any, *, exact: bool = False) -> None:
        usearch = _load("usearch.index", "usearch")
        kind, dtype = index.metric_kind, index.dtype
        if kind not in (usearch.MetricKind.IP, usearch.MetricKind.Cos):
            raise ValueError(
                f"index: expected one that compares by the inner product, got {kind}; make it with "
                'metric="ip"'
            )
        if exact and (kind, dtype) != (usearch.MetricKind.IP, usearch.ScalarKind.F32):
            raise ValueError(
                f"exact: expected an index of float32 that compares by the inner product, got "
                f'{dtype} and {kind}; make it with metric="ip", dtype="f32"'
            )
        self.index, self.exact = index, exact
        self._function: Any = None  # that the index calls, where it compares by recos

    @classmethod
    def build(cls, rows: np.ndarray, *, exact: bool = False, **options: Any) -> UsearchEngine:
        """Make an index of rows; options are those of ``usearch.index.Index``.

        Parameters
        ----------
        rows : array of float32, shape (n, d)
            The rows of folded vectors.
        exact : bool
            Whether to visit all rows.
        """
        usearch = _load("usearch.index", "usearch")
        options = {"metric": "ip", "dtype": "f32"} | options
        index = usearch.Index(ndim=rows.shape[1], **options)
        index.add(np.arange(len(rows)), rows)
        return cls(index, exact=exact)

    @classmethod
    def build_recos(cls, vectors: Any, **options: Any) -> UsearchEngine:
        """Make an index that compares by recos, compiled: it holds ``[v | sort(v)]``.

        It takes twice the memory and is slower, and has no use for folding.

        Parameters
        ----------
        vectors : array, shape (n, d)
            Rows to search.
        """
        usearch = _load("usearch.index", "usearch")
        from recos._kernels.distance import one_less_recos  # noqa: PLC0415 - loads Numba

        given = on_host(read_matrices(vectors, vectors, names=("vectors", "vectors")))
        rows = unit_rows(given.arrays[0], given.dtype, "vectors")
        function = one_less_recos(rows.shape[1])
        metric = usearch.CompiledMetric(
            function.address, usearch.MetricKind.IP, usearch.MetricSignature.ArrayArray
        )
        engine = cls.build(_with_sorted(rows), metric=metric, **options)
        engine._function = function
        return engine

    def __len__(self) -> int:
        """Return how many rows the index holds."""
        return len(self.index)

    def propose(self, queries: np.ndarray, count: int) -> np.ndarray:
        """Return the rows with the least distances that the index finds."""
        queries = queries if self._function is None else _with_sorted(queries)
        found = self.index.search(queries, count, exact=self.exact)
        which = np.full((len(queries), count), -1)
        if len(queries) == 1:  # usearch returns another type then
            which[0, : len(found.keys)] = found.keys
            return which
        there = np.arange(count) < found.counts[:, None]
        which[there] = found.keys[there].astype(np.int64)
        return which


def unit_rows(X: np.ndarray, dtype: Any, name: str) -> np.ndarray:
    """Return rows divided by their norms, in float32; zero rows stay zero.

    Rows that are not finite raise an error with their name.
    """
    rows: np.ndarray = np.empty(X.shape, np.float32)

    def work(part: slice) -> None:
        block, norm = in_range(np.ascontiguousarray(X[part], dtype))
        if not np.isfinite(norm).all():
            check_finite(np, np.abs(block).max(axis=1), name, part.start)
        norm[norm == 0] = 1
        np.divide(block, norm[:, None], out=rows[part], casting="same_kind")

    run_blocks(work, spans(len(X), max(16, _NUMBERS // X.shape[1])))
    return rows


def _with_sorted(rows: np.ndarray) -> np.ndarray:
    return np.hstack([rows, np.sort(rows, axis=1)])


def _load(module: str, extra: str) -> Any:
    """Import what an engine needs, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{error.name} is not installed: pip install 'recos[{extra}]'", name=error.name
        ) from None

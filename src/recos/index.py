"""An index: vectors with what is known of them, searched exactly, grown, and kept on disk.

An index is a few *segments*, each with its rows, their features and a mask of those that were
removed. Segments are never changed: `Index.add` and `Index.remove` put others in their place at
once, so a search in another thread sees the state before or after.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recos import _device, _files
from recos._arrays import on_host, read
from recos._blocks import parse_memory, run_blocks, spans
from recos._scan import Corpus, Found, make_corpus, merge, search
from recos._stores import Codes, Plain, Store, encode
from recos.metrics import Metric, Weights, find_metric
from recos.profiles import Features, Norms, Profiles, choose_rank, describe, fit
from recos.search import TopK, check_finite_rows, give_back, read_k
from recos.transforms import Transform, find_transform, unfitted

DTYPES = ("float32", "float16", "int8")
_BLOCK = 2**25  # bytes of rows that are read, described and written at a time
_SELECTIVE = 8  # a filter that leaves less than one row in so many is searched by itself
_MOST_SEGMENTS = 8  # that a saved index has before it is written anew as one


class _Segment(NamedTuple):
    """Some rows: where they lie, their ids, which of them are still there, and their files."""

    corpus: Any  # a Corpus, or what ``_device`` keeps
    ids: np.ndarray
    alive: np.ndarray
    files: dict[str, Any]


class Index:
    """Vectors that are searched again and again: exact top k by any of the four similarities.

    Parameters
    ----------
    vectors : array, shape (n, d)
        Rows to search; they are copied.
    ids : array of int or of str, shape (n,), optional
        Names of the rows, each once; by default 0, 1, 2, ...
    metric : str
        ``recos``, ``cos``, ``decos`` or ``tanimoto``.
    dtype : str, optional
        ``float32``, ``float16`` or ``int8``: how rows are stored. Results are exact for what is
        stored. By default float16 stays what it is, and everything else becomes float32.
    keep : bool
        Whether int8 codes only screen, and a float32 copy of the rows is kept to score with.
    transform : str or Transform, optional
        What to do with rows before they are stored, and with queries: a fitted transform of
        `recos.transforms`, or one that is to learn from ``vectors``. It is kept with the index.
    device : str or torch.device, optional
        A CUDA device to keep the rows on and to search with: as float32, ``float16`` or
        ``bfloat16``. Rows that do not fit into its memory stay in host memory, and are brought
        there for each search.

    Examples
    --------
    >>> import numpy as np
    >>> import recos
    >>> vectors = np.random.default_rng(0).normal(size=(100, 16)).astype(np.float32)
    >>> index = recos.Index(vectors, ids=[f"row {i}" for i in range(100)])
    >>> index.search(vectors[:2], 1).indices
    array([['row 0'],
           ['row 1']], dtype='<U6')
    """

    def __init__(
        self,
        vectors: Any,
        *,
        ids: Any = None,
        metric: str | Metric = "recos",
        dtype: str | None = None,
        keep: bool = False,
        transform: str | Transform | None = None,
        device: Any = None,
    ) -> None:
        self.metric = find_metric(metric)
        self._device = None if device is None else _device.read_device(device)
        if device is not None and transform is not None:
            raise ValueError(
                "transform: expected none for an index on a device; transform rows and queries "
                "before they come to it"
            )
        rows = _read_vectors(vectors, self._device)
        self.dtype = _read_dtype(dtype, rows, self._device)
        self.width = rows.shape[1]
        self.transform = None if transform is None else _learnt(transform, rows)
        self._transform_files: dict[str, Any] = {}
        self._keep = keep
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._shape_files: dict[str, Any] = {}
        self._next_id = 0
        self._shape: Profiles | Norms | None = None  # fitted to the first rows
        self._segments: tuple[_Segment, ...] = ()
        self.add(rows, ids=ids)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return sum(int(segment.alive.sum()) for segment in self._segments)

    def __repr__(self) -> str:
        """Return how many rows of which kind there are, and where."""
        kept = " beside float32" if self.dtype == "int8" and self._keep else ""
        where = f", on {self._device}" if self._device else ""
        where += f", in {self._folder}" if self._folder else ""
        return f"Index({len(self)} x {self.width} {self.dtype}{kept}, {self.metric.name!r}{where})"

    @property
    def ids(self) -> np.ndarray:
        """The ids of the rows, in order."""
        segments = self._segments
        ids = [segment.ids[segment.alive] for segment in segments]
        return np.concatenate(ids) if ids else np.empty(0, np.int64)

    def search(
        self,
        queries: Any,
        k: int = 10,
        /,
        *,
        where: Any = None,
        memory: str | int = "256MiB",
        progress: bool | None = None,
    ) -> TopK:
        """Return the k most similar rows for each query, exactly.

        Parameters
        ----------
        queries : array, shape (n, d)
            Rows to find others for.
        k : int
            How many to find; fewer are returned where there are fewer.
        where : array, optional
            Which rows may be found: a mask of bools, in the order of `ids`, or some ids.
        memory : str or int
            How much to use beside the index and the result.
        progress : bool, optional
            Whether to show progress; by default on a terminal, once it takes more than two seconds.

        Returns
        -------
        TopK
            Named tuple (scores, indices) of arrays of shape (n, k); the indices are ids. Equal
            scores come in the order in which rows were added.
        """
        return self._search(queries, k, where, memory, progress)[0]

    def _search(
        self, queries: Any, k: int, where: Any, memory: str | int, progress: bool | None
    ) -> tuple[TopK, np.ndarray]:
        """Return also how many rows were scored exactly for each query."""
        segments, budget = self._segments, parse_memory(memory)
        given = read(queries, names=("queries",))
        given = on_host(given) if self._device is None else given
        rows = given.arrays[0]
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ValueError(
                f"queries: expected a matrix of shape (n, {self.width}), got shape "
                f"{tuple(rows.shape)}; a single vector v is the matrix v[None, :]"
            )
        if self._device is None:
            check_finite_rows(rows, "queries", np.arange(len(rows)))
            rows = self._transformed(np.ascontiguousarray(rows, given.dtype), "queries")
        else:
            rows, given = _device.on_device(rows, self._device), given._replace(xp=np)
        masks = _masks(segments, where)
        counts = [int(np.count_nonzero(mask)) for mask in masks]
        k = min(read_k(k), sum(counts))
        if not (k and len(rows)):
            found = Found.none(len(rows), k)
        else:
            parts, start = [], 0
            for segment, mask, count in zip(segments, masks, counts, strict=True):
                best = _search_segment(self.metric, rows, segment, mask, count, k, budget, progress)
                best.indices[best.indices >= 0] += start
                parts.append(best)
                start += len(segment.ids)
            found = merge(parts, k)
        names = [segment.ids for segment in segments] or [np.empty(0, np.int64)]
        ids = names[0] if len(names) == 1 else np.concatenate(names)  # most often without a copy
        return give_back(given, found, ids), found.scored

    def add(self, vectors: Any, /, *, ids: Any = None) -> None:
        """Add rows.

        Parameters
        ----------
        vectors : array, shape (n, d)
            Rows to add.
        ids : array of int or of str, shape (n,), optional
            Their names, of the kind that the index has; by default the next numbers.
        """
        rows = _read_vectors(vectors, self._device)
        _check_width(rows, self.width)
        rows = self._transformed(rows, "vectors")
        with self._lock:
            names = self._read_ids(ids, len(rows))
            if len(rows):
                segment = self._make_segment(rows, names)
                self._segments = (*self._segments, segment)

    def remove(self, ids: Any, /) -> int:
        """Remove rows, and return how many there were.

        Parameters
        ----------
        ids : array of int or of str
            Names of rows; those that are not there are passed over.
        """
        gone = np.atleast_1d(np.asarray(ids))
        with self._lock:
            before = len(self)
            self._segments = tuple(_without(segment, gone) for segment in self._segments)
            return before - len(self)

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write the index to a folder, or what has changed to the folder that it came from.

        Files are written beside those in use and taken into use by one rename, so whatever happens
        the folder holds the index before or after. Many segments, or many removed rows, are written
        anew as one.
        """
        folder = Path(path).resolve()
        if self._device is not None:
            self._on_host().save(folder)
            self._folder = folder
            return
        _files.make_folder(folder)
        with self._lock:
            segments = self._segments
            dead = sum(len(segment.ids) for segment in segments) - len(self)
            if not len(self):
                segments = ()
            elif len(segments) > _MOST_SEGMENTS or 4 * dead > len(self) + dead:
                shape = segments[0].corpus.shape
                blocks = (block for segment in segments for block in _alive_blocks(segment))
                entries = _write_blocks(folder, shape, self.dtype, self._keep, blocks)
                segments = (_opened(folder, entries, shape, mmap=True),)
            elif folder != self._folder:
                segments = tuple(segment._replace(files={}) for segment in segments)
            self._segments = tuple(_written(folder, segment) for segment in segments)
            if folder != self._folder:
                self._write_shape(folder)
                self._write_transform(folder)
            self._folder = folder
            _files.write_manifest(folder, self._content())

    def _on_host(self) -> Index:
        """Return the same index with its rows in host memory; bfloat16 becomes float32."""
        parts = [
            _device.to_host(segment.corpus.rows, np.flatnonzero(segment.alive))
            for segment in self._segments
        ]
        rows = np.concatenate(parts) if parts else np.empty((0, self.width), np.float32)
        dtype = "float16" if self.dtype == "float16" else "float32"
        index = Index(rows, ids=self.ids, metric=self.metric, dtype=dtype)
        index._next_id = self._next_id
        return index

    def _write_shape(self, folder: Path) -> None:
        if isinstance(self._shape, Profiles):
            token = _files.new_token()
            self._shape_files = {
                name: _files.write_array(folder, token, name, array)
                for name, array in self._shape._asdict().items()
            }

    def _write_transform(self, folder: Path) -> None:
        if self.transform is not None:
            self._transform_files = _stored(folder, _files.new_token(), self.transform.to_dict())

    def _transformed(self, rows: np.ndarray, name: str) -> np.ndarray:
        """Return rows as they are stored and compared."""
        if self.transform is None:
            return rows
        check_finite_rows(rows, name, np.arange(len(rows)))
        wide = rows.dtype == np.float64 or (rows.dtype.kind in "iu" and rows.dtype.itemsize > 2)
        changed: np.ndarray = self.transform.transform(
            rows.astype(np.float64 if wide else np.float32, copy=False)
        )
        return changed

    def _content(self) -> dict[str, Any]:
        """Return what the manifest says."""
        transform = {"transform": self._transform_files} if self._transform_files else {}
        return transform | {
            "metric": self.metric.name,
            "dtype": self.dtype,
            "keep": self._keep,
            "width": self.width,
            "next": self._next_id,
            "shape": self._shape_files or (self._shape and self._shape._asdict()),
            "segments": [segment.files for segment in self._segments],
        }

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], /, *, mmap: bool = True, device: Any = None
    ) -> Index:
        """Return the index that a folder holds.

        Parameters
        ----------
        path : path
            The folder.
        mmap : bool
            Whether to leave the rows on the disk and read what a search needs, so that they need
            not fit into memory. Otherwise everything is read and compared with its checksums.
        device : str or torch.device, optional
            A CUDA device to copy the rows to, as for `Index`.
        """
        folder = Path(path).resolve()
        content = _files.read_manifest(folder)
        index = cls.__new__(cls)
        index.metric, index.dtype = find_metric(content["metric"]), content["dtype"]
        index._device = None
        index.width, index._keep = content["width"], content["keep"]
        index._lock, index._folder = threading.Lock(), folder
        index._next_id = content["next"]
        index._transform_files = content.get("transform", {})
        index.transform = (
            Transform.from_dict(_restored(folder, index._transform_files))
            if index._transform_files
            else None
        )
        found = content["shape"]  # None where there never were rows
        index._shape_files = found if found and "even" in found else {}
        index._shape = shape = _read_shape(folder, found) if found else None
        index._segments = tuple(
            _opened(folder, files, shape, mmap=mmap) for files in content["segments"] if shape
        )
        return index if device is None else index._moved_to(device)

    def _moved_to(self, device: Any) -> Index:
        """Return the same index with its rows on a device; int8 codes become numbers."""
        if self.transform is not None:
            raise ValueError(
                "device: expected an index without a transform, got one with it; search it on the "
                "host, or build one of transformed rows"
            )
        dtype = "float32" if self.dtype == "int8" else self.dtype
        empty = np.empty((0, self.width), np.float32)
        index = Index(empty, metric=self.metric, dtype=dtype, device=device)
        for segment in self._segments:
            for names, rows in _alive_blocks(segment):
                index.add(rows, ids=names)
        index._folder, index._next_id = self._folder, self._next_id
        return index

    @classmethod
    def build(
        cls,
        path: str | os.PathLike[str],
        blocks: Iterable[Any],
        /,
        *,
        metric: str | Metric = "recos",
        dtype: str | None = None,
        keep: bool = False,
        transform: str | Transform | None = None,
    ) -> Index:
        """Write an index of rows that come in blocks and need never be in memory together.

        Parameters
        ----------
        path : path
            The folder to write.
        blocks : iterable of array, shape (n, d), or of pairs (ids, array)
            The rows.
        metric, dtype, keep, transform
            As for `Index`. A transform that has learnt nothing learns from the first 32 MiB of
            rows: where they are not like the others, pass one that is fitted.

        Returns
        -------
        Index
            The index, its rows on the disk.
        """
        folder = Path(path).resolve()
        _files.make_folder(folder)
        pairs = _gathered(blocks)
        names, first = next(pairs, (None, None))
        if first is None:
            raise ValueError("blocks: expected at least one block with rows, got none")
        learnt = None if transform is None else _learnt(transform, first)
        dtype = dtype or _read_dtype(None, first)
        index = cls(first[:0], metric=metric, dtype=dtype, keep=keep, transform=learnt)
        first = index._transformed(first, "vectors")
        shape = index._fitted(first)

        def named() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            yield index._read_ids(names, len(first)), first
            for ids, rows in pairs:
                _check_width(rows, index.width)
                yield index._read_ids(ids, len(rows)), index._transformed(rows, "vectors")

        files = _write_blocks(folder, shape, index.dtype, keep, named())
        segment = _opened(folder, files, shape, mmap=True)
        _check_unique(segment.ids)
        index._segments, index._folder = (segment,), folder
        index._write_shape(folder)
        index._write_transform(folder)
        _files.write_manifest(folder, index._content())
        return index

    def verify(self) -> None:
        """Compare every file of a saved index with its checksums; raise for one that differs."""
        if self._folder is None:
            raise ValueError(
                "verify: expected an index that was saved or loaded, got one in memory"
            )
        for entry in _files.files_in(_files.read_manifest(self._folder)):
            _files.check_array(self._folder, entry)

    @property
    def _itemsize(self) -> int:
        return 1 if self.dtype == "int8" else np.dtype(self.dtype).itemsize

    def _fitted(self, rows: np.ndarray) -> Profiles | Norms:
        """Return what gives the features of rows, fitted to the first that there are."""
        if self._shape is None:
            self._shape = fit(self.metric, rows, choose_rank(rows.shape[1], self._itemsize))
        return self._shape

    def _make_segment(self, rows: Any, ids: np.ndarray) -> _Segment:
        if self._device is not None:
            corpus = _device.keep(self.metric, rows, self.dtype, self._device)
            return _Segment(corpus, ids, np.ones(len(ids), bool), {})
        shape = self._fitted(rows)
        store, features = _described(shape, self.dtype, self._keep, rows)
        return _Segment(make_corpus(store, shape, features), ids, np.ones(len(ids), bool), {})

    def _read_ids(self, ids: Any, count: int) -> np.ndarray:
        """Return the names of rows to be added, and check them."""
        kind = next((segment.ids.dtype.kind for segment in self._segments), None)
        if ids is None:
            if kind == "U":
                raise ValueError("ids: expected names as the index has, got none")
            names = np.arange(self._next_id, self._next_id + count)
        else:
            names = np.asarray(ids)
        if names.shape != (count,) or (count and names.dtype.kind not in "iuU"):
            raise ValueError(
                f"ids: expected {count} whole numbers or texts, got shape {names.shape} of "
                f"{names.dtype}"
            )
        names = names if names.dtype.kind == "U" else names.astype(np.int64)
        if kind is not None and kind != names.dtype.kind:
            raise ValueError(f"ids: expected {_KINDS[kind]} as the index has, got {names.dtype}")
        _check_unique(names)
        for segment in self._segments:
            known = names[np.isin(names, segment.ids[segment.alive])]
            if len(known):
                raise ValueError(
                    f"ids: expected new ones, got {known[0]!r}, which is there; remove it first"
                )
        if count and names.dtype.kind == "i":
            self._next_id = max(self._next_id, int(names.max()) + 1)
        return names


_KINDS = {"U": "texts", "i": "whole numbers"}


def _without(segment: _Segment, gone: np.ndarray) -> _Segment:
    """Return a segment without some ids, itself where it has none of them."""
    alive = segment.alive & ~np.isin(segment.ids, gone)
    if alive.sum() == segment.alive.sum():
        return segment
    files = {name: x for name, x in segment.files.items() if name != "alive"}
    return segment._replace(alive=alive, files=files)


def _masks(segments: tuple[_Segment, ...], where: Any) -> list[np.ndarray]:
    """Return which rows of each segment may be found."""
    if where is None:
        return [segment.alive for segment in segments]
    chosen = np.asarray(where)
    counts = [int(segment.alive.sum()) for segment in segments]
    if chosen.dtype == bool:
        if chosen.shape != (sum(counts),):
            raise ValueError(
                f"where: expected a mask of {sum(counts)} bools, got shape {chosen.shape}"
            )
        masks = []
        for segment, part in zip(segments, np.split(chosen, np.cumsum(counts)[:-1]), strict=True):
            mask = segment.alive.copy()
            mask[mask] = part
            masks.append(mask)
        return masks
    if (
        chosen.size
        and segments
        and chosen.dtype.kind.replace("u", "i") != segments[0].ids.dtype.kind
    ):
        kind = _KINDS[segments[0].ids.dtype.kind]
        raise ValueError(f"where: expected a mask or ids, which are {kind}, got {chosen.dtype}")
    return [segment.alive & np.isin(segment.ids, chosen) for segment in segments]


def _search_segment(
    metric: Metric,
    rows: np.ndarray,
    segment: _Segment,
    mask: np.ndarray,
    allowed: int,
    k: int,
    memory: int,
    progress: bool | None,
) -> Found:
    """Return the best rows of a segment; few allowed rows are gathered, not sought among all."""
    corpus = segment.corpus
    if not isinstance(corpus, Corpus):
        if not allowed:
            return Found.none(len(rows), k)
        some = None if allowed == len(mask) else mask
        return Found(*_device.search_kept(metric, rows, corpus, k, some, memory=memory))
    if allowed * _SELECTIVE >= len(mask):
        if allowed < len(mask):
            corpus = corpus._replace(allowed=mask)
        return search(metric, rows, corpus, k, memory=memory, progress=progress)
    which, found = np.flatnonzero(mask), [Found.none(len(rows), k)]
    for part in spans(len(which), max(k, memory // 4 // (4 * rows.shape[1]))):
        some = which[part]
        store = Plain(corpus.store.exact(some), corpus.store.dtype)
        features = Features(*(field[some] for field in corpus.features))
        if isinstance(corpus.store, Codes):  # the rows themselves are compared, not the codes
            features = describe(corpus.shape, store.rows, store.dtype, name="vectors")
        best = search(
            metric, rows, make_corpus(store, corpus.shape, features), k,
            memory=memory // 2, progress=progress,
        )  # fmt: skip
        best.indices[best.indices >= 0] = some[best.indices[best.indices >= 0]]
        found = [merge([*found, best], k)]
    return found[0]


def _described(
    shape: Profiles | Norms, dtype: str, keep: bool, rows: np.ndarray
) -> tuple[Store, Features]:
    """Return a copy of rows, or codes of them, and what is known of it."""
    real = np.dtype(np.float32)  # which holds float16 exactly
    copies = np.empty(rows.shape, np.float16 if dtype == "float16" else real)
    if copies.itemsize < rows.itemsize:
        _check_fits(rows, copies.dtype)
    features = describe(shape, rows, real, name="vectors", out=copies)
    if dtype != "int8":
        return Plain(copies, real), features
    parts = run_blocks(lambda part: encode(copies[part]), spans(len(rows), 2**10))
    codes, scales, lost = (np.concatenate(fields) for fields in zip(*parts, strict=True))
    if keep:  # the product with the codes is off by what they lost
        error = 1.02 * features.error + lost * features.over * 1.001
        return Codes(codes, scales, copies), features._replace(error=error.astype(np.float32))
    store = Codes(codes, scales)
    return store, describe(shape, store.exact(np.arange(len(rows))), real, name="vectors")


def _check_fits(rows: np.ndarray, dtype: np.dtype) -> None:
    if (np.abs(rows[np.isfinite(rows)]) > np.finfo(dtype).max).any():
        raise ValueError(
            f"vectors: expected numbers that fit into {dtype}, got larger ones; scale them, or "
            "store them in more digits"
        )


def _alive_blocks(segment: _Segment) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    which = np.flatnonzero(segment.alive)
    store = segment.corpus.store
    for part in spans(len(which), max(1, _BLOCK // (4 * store.width))):
        yield segment.ids[which[part]], store.exact(which[part])


def _write_blocks(
    folder: Path,
    shape: Profiles | Norms,
    dtype: str,
    keep: bool,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> dict[str, Any]:
    """Write rows and what is known of them, block by block, and return what the manifest says."""
    token, ids = _files.new_token(), []
    files: dict[str, _files.ArrayFile] = {}
    try:
        for names, rows in blocks:
            store, features = _described(shape, dtype, keep, rows)
            ids.append(names)
            for name, array in _arrays(store, features).items():
                if name not in files:
                    files[name] = _files.ArrayFile(folder, token, name)
                files[name].append(array)
        entries = {name: file.finish() for name, file in files.items()}
    finally:
        for unfinished in files.values():
            unfinished.file.close()
    return entries | {"ids": _files.write_array(folder, token, "ids", np.concatenate(ids))}


def _arrays(store: Any, features: Features) -> dict[str, np.ndarray]:
    """Return the arrays that are kept on disk, by name."""
    found = store._asdict() | features._asdict()
    return {name: x for name, x in found.items() if isinstance(x, np.ndarray)}


def _written(folder: Path, segment: _Segment) -> _Segment:
    """Return a segment all of whose arrays are in files of a folder."""
    token = _files.new_token()
    arrays = _arrays(segment.corpus.store, segment.corpus.features) | {"ids": segment.ids}
    if not segment.alive.all():
        arrays["alive"] = segment.alive
    missing = {name: x for name, x in arrays.items() if name not in segment.files}
    new = {name: _files.write_array(folder, token, name, x) for name, x in missing.items()}
    return segment._replace(files=segment.files | new)


def _opened(
    folder: Path, files: dict[str, Any], shape: Profiles | Norms, *, mmap: bool
) -> _Segment:
    """Return a segment from its files; ids and what was removed are always read."""
    large = {name: x for name, x in files.items() if name not in ("ids", "alive")}
    found = {name: _files.read_array(folder, x, mmap=mmap) for name, x in large.items()}
    ids = _files.read_array(folder, files["ids"])
    alive = np.ones(len(ids), bool)
    if "alive" in files:
        alive = _files.read_array(folder, files["alive"])
    features = Features(*(found[name] for name in Features._fields))
    store: Store = (
        Codes(found["codes"], found["scales"], found.get("originals"))
        if "codes" in found
        else Plain(found["rows"], np.dtype(np.float32))
    )
    return _Segment(make_corpus(store, shape, features), ids, alive, files)


def _read_shape(folder: Path, found: dict[str, Any]) -> Profiles | Norms:
    if "even" in found:
        even, odd = (_files.read_array(folder, found[name]) for name in ("even", "odd"))
        return Profiles(even, odd)
    return Norms(Weights(*found["weights"]), found["middle"])


def _learnt(transform: str | Transform, rows: np.ndarray) -> Transform:
    """Return a transform that can be used on rows: itself, or one that has learnt from them."""
    found = find_transform(transform)
    if found.fitted:
        width = getattr(found, "n_features_in_", rows.shape[1])
        if width != rows.shape[1]:
            raise ValueError(
                f"transform: expected one fitted to {rows.shape[1]} components as the vectors "
                f"have, got one fitted to {width}"
            )
        return found
    if not len(rows):
        raise ValueError("transform: expected a fitted one, as there are no vectors to learn from")
    check_finite_rows(rows, "vectors", np.arange(len(rows)))
    return unfitted(found).fit(rows)


def _stored(folder: Path, token: str, value: Any, name: str = "transform") -> Any:
    """Write the arrays among values to files, and return the values with what says so."""
    if isinstance(value, np.ndarray):
        return _files.write_array(folder, token, name, value)
    if isinstance(value, dict):
        return {key: _stored(folder, token, x, f"{name}_{key}") for key, x in value.items()}
    if isinstance(value, list):
        return [_stored(folder, token, x, f"{name}_{i}") for i, x in enumerate(value)]
    return value


def _restored(folder: Path, value: Any) -> Any:
    """Return values that `_stored` wrote, their arrays read."""
    if isinstance(value, dict) and "checksums" in value:
        return _files.read_array(folder, value)
    if isinstance(value, dict):
        return {key: _restored(folder, x) for key, x in value.items()}
    return [_restored(folder, x) for x in value] if isinstance(value, list) else value


def _gathered(blocks: Iterable[Any]) -> Iterator[tuple[np.ndarray | None, np.ndarray]]:
    """Yield ids and rows, small blocks put together."""
    ids: list[np.ndarray] = []
    held: list[np.ndarray] = []
    for block in blocks:
        names, rows = block if isinstance(block, tuple) else (None, block)
        rows = _read_vectors(rows)
        if held and bool(ids) != (names is not None):
            raise ValueError("blocks: expected ids with each block or with none")
        if len(rows):
            held.append(rows)
            ids += [] if names is None else [np.asarray(names)]
        if sum(x.nbytes for x in held) >= _BLOCK:
            yield (np.concatenate(ids) if ids else None), np.concatenate(held)
            ids, held = [], []
    if held:
        yield (np.concatenate(ids) if ids else None), np.concatenate(held)


def _read_vectors(vectors: Any, device: Any = None) -> Any:
    given = read(vectors, names=("vectors",))
    rows = on_host(given).arrays[0] if device is None else _device.detached(given)
    if rows.ndim != 2:
        raise ValueError(
            f"vectors: expected a matrix of shape (rows, components), got shape {tuple(rows.shape)}"
        )
    return rows


def _read_dtype(dtype: str | None, rows: Any, device: Any = None) -> str:
    known = DTYPES if device is None else _device.DTYPES
    if dtype is None:
        found = str(rows.dtype).rpartition(".")[2]
        return found if found in known and found != "int8" else "float32"
    if dtype not in known:
        where = "" if device is None else " on a device"
        raise ValueError(f"dtype: expected one of {', '.join(known)}{where}, got {dtype!r}")
    return dtype


def _check_width(rows: np.ndarray, width: int) -> None:
    if rows.shape[1] != width:
        raise ValueError(f"vectors: expected {width} components as the others, got {rows.shape[1]}")


def _check_unique(ids: np.ndarray) -> None:
    ascending = np.sort(ids)
    again = ascending[1:][ascending[1:] == ascending[:-1]]
    if len(again):
        raise ValueError(f"ids: expected each once, got {again[0]!r} twice")

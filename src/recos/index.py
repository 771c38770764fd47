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
from typing import Any

import numpy as np

from recos import _device, _files
from recos._arrays import on_host, read
from recos._blocks import parse_memory, spans
from recos._ids import check_kind, check_unique, next_ids, read_ids
from recos._scan import Corpus, Found, make_corpus, merge, search
from recos._segments import (
    BLOCK,
    Segment,
    alive_blocks,
    described,
    opened,
    read_shape,
    read_transform,
    write_blocks,
    write_shape,
    write_transform,
    written,
)
from recos._stores import Codes, Plain
from recos.metrics import Metric, find_metric
from recos.profiles import Features, Norms, Profiles, describe, fit
from recos.search import TopK, check_finite_rows, give_back, read_k
from recos.transforms import Transform, find_transform, unfitted

DTYPES = ("float32", "float16", "int8")
_SELECTIVE = 8  # a filter that leaves less than one row in so many is searched by itself
_MOST_SEGMENTS = 8  # that a saved index has before it is written anew as one


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
    rank : int, optional
        For recos alone: how many coordinates to keep of each sorted row, which rule rows out. By
        default the first rows say how many are worth it, within 6 % of the room of wide rows.
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
        rank: int | None = None,
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
        if keep and self.dtype != "int8":
            raise ValueError(f"keep: expected dtype int8, got {self.dtype}: its rows are kept")
        self._keep, self._rank = keep, _read_rank(rank, self.metric, self.width)
        self.transform = None if transform is None else _learnt(transform, rows)
        self._transform_files: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._manifest = b""  # of the folder, as it was last read or written
        self._shape_files: dict[str, Any] = {}
        self._next_id = 0
        self._shape: Profiles | Norms | None = None  # fitted to the first rows
        self._segments: tuple[Segment, ...] = ()
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
                + str(tuple(rows.shape))
                + ("; a single vector v is the matrix v[None, :]" if rows.ndim == 1 else "")
            )
        if self._device is None:
            check_finite_rows(rows, "queries")
            rows = self._transformed(rows, "queries")
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
                shape, corpus = None, None  # type: Profiles | Norms | None, Any
                if self._device is not None:
                    corpus = _device.keep(self.metric, rows, self.dtype, self._device)
                else:
                    shape = self._shape or self._fitted(rows)
                    store, features = described(shape, self.dtype, self._keep, rows)
                    corpus = make_corpus(store, shape, features)
                segment = Segment(corpus, names, np.ones(len(names), bool), {})
                # Nothing has changed until here, where nothing can fail any more.
                self._shape, self._next_id = shape, _next_id(self._next_id, names)
                self._segments = (*self._segments, segment)

    def remove(self, ids: Any, /) -> int:
        """Remove rows, and return how many there were.

        Parameters
        ----------
        ids : array of int or of str, or of bool
            Names of rows, and those that are not there are passed over; or a mask of the rows to
            remove, in the order of `ids`.
        """
        with self._lock:
            before = len(self)
            masks = _masks(self._segments, ids, "remove")
            self._segments = tuple(map(_without, self._segments, masks))
            return before - len(self)

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write the index to a folder, or what has changed to the folder that it came from.

        Files are written beside those in use and taken into use by one rename, so whatever happens
        the folder holds the index before or after. Many segments, or many removed rows, are written
        anew as one. Another index in the folder is replaced, but not one that was written there
        since this one was loaded from or saved to it: that raises a FileExistsError.
        """
        folder = Path(path).resolve()
        if self._device is not None:
            self._on_host().save(folder)
            self._folder = folder
            return
        _files.make_folder(folder)
        with self._lock:
            known, segments = self._is_in(folder), self._segments
            dead = sum(len(segment.ids) for segment in segments) - len(self)
            if not len(self):
                segments = ()
            elif len(segments) > _MOST_SEGMENTS or 4 * dead > len(self) + dead:
                shape = segments[0].corpus.shape
                blocks = (block for segment in segments for block in alive_blocks(segment))
                entries = write_blocks(folder, shape, self.dtype, self._keep, blocks)
                segments = (opened(folder, entries, shape, mmap=True),)
            elif not known:
                segments = tuple(segment._replace(files={}) for segment in segments)
            segments = tuple(written(folder, segment) for segment in segments)
            shape_files = self._shape_files if known else write_shape(folder, self._shape)
            changes = self._transform_files if known else write_transform(folder, self.transform)
            content = self._content(segments, shape_files, changes)
            self._manifest = _files.write_manifest(folder, content)
            self._folder, self._segments = folder, segments
            self._shape_files, self._transform_files = shape_files, changes

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

    def _is_in(self, folder: Path) -> bool:
        """Return whether a folder holds the files of this index; raise where others replaced them.

        Nobody is asked to keep their hands off a folder: what is there now is compared with what
        was last read or written, and files that were deleted are written again.
        """
        if folder != self._folder:
            return False
        found = _files.manifest_in(folder)
        if found and found != self._manifest:
            raise FileExistsError(
                f"{folder}: expected the index that this one was loaded from or saved to, found "
                "one that was written since; save to another folder, or load it and change that"
            )
        entries = [self._shape_files, self._transform_files]
        files = _files.files_in(entries + [segment.files for segment in self._segments])
        return bool(found) and all((folder / entry["file"]).is_file() for entry in files)

    def _transformed(self, rows: np.ndarray, name: str, first: int = 0) -> np.ndarray:
        """Return rows as they are stored and compared."""
        if self.transform is None:
            return rows
        check_finite_rows(rows, name, np.arange(first, first + len(rows)))
        wide = rows.dtype == np.float64 or (rows.dtype.kind in "iu" and rows.dtype.itemsize > 2)
        changed: np.ndarray = self.transform.transform(
            rows.astype(np.float64 if wide else np.float32, copy=False)
        )
        return changed

    def _content(
        self, segments: tuple[Segment, ...], shape_files: dict[str, Any], changes: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the manifest says."""
        return ({"transform": changes} if changes else {}) | {
            "metric": self.metric.name,
            "dtype": self.dtype,
            "keep": self._keep,
            "rank": self._rank,
            "width": self.width,
            "next": self._next_id,
            "shape": shape_files or (self._shape and self._shape._asdict()),
            "segments": [segment.files for segment in segments],
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
        index = _files.read_with_files(folder, lambda found: cls._opened(folder, found, mmap))
        return index if device is None else index._moved_to(device)

    @classmethod
    def _opened(cls, folder: Path, content: dict[str, Any], mmap: bool) -> Index:
        index = cls.__new__(cls)
        index._manifest = _files.manifest_bytes(content)
        index.metric, index.dtype = find_metric(content["metric"]), content["dtype"]
        index._device = None
        index.width, index._keep = content["width"], content["keep"]
        index._rank = content.get("rank")
        index._lock, index._folder = threading.Lock(), folder
        index._next_id = content["next"]
        index._transform_files = content.get("transform", {})
        index.transform = read_transform(folder, index._transform_files)
        found = content["shape"]  # None where there never were rows
        index._shape_files = found if found and "even" in found else {}
        index._shape = shape = read_shape(folder, found) if found else None
        index._segments = tuple(
            opened(folder, files, shape, mmap=mmap) for files in content["segments"] if shape
        )
        return index

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
            for names, rows in alive_blocks(segment):
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
        rank: int | None = None,
        transform: str | Transform | None = None,
    ) -> Index:
        """Write an index of rows that come in blocks and need never be in memory together.

        Parameters
        ----------
        path : path
            The folder to write.
        blocks : iterable of array, shape (n, d), or of pairs (ids, array)
            The rows.
        metric, dtype, keep, rank, transform
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
        index = cls(first[:0], metric=metric, dtype=dtype, keep=keep, rank=rank, transform=learnt)
        first = index._transformed(first, "vectors")
        index._shape = shape = index._fitted(first)

        def name_rows(ids: Any, count: int) -> np.ndarray:
            found = index._read_ids(ids, count)
            index._next_id = _next_id(index._next_id, found)
            return found

        def named() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            yield name_rows(names, len(first)), first
            count = len(first)
            for ids, rows in pairs:
                _check_width(rows, index.width)
                yield name_rows(ids, len(rows)), index._transformed(rows, "vectors", count)
                count += len(rows)

        index._transform_files = write_transform(folder, index.transform)  # refuses some, so first
        files = write_blocks(folder, shape, index.dtype, keep, named())
        segment = opened(folder, files, shape, mmap=True)
        index._segments, index._folder = (segment,), folder
        index._shape_files = write_shape(folder, shape)
        content = index._content(index._segments, index._shape_files, index._transform_files)
        index._manifest = _files.write_manifest(folder, content)
        return index

    def verify(self) -> None:
        """Compare every file of a saved index with its checksums; raise for one that differs."""
        if self._folder is None:
            raise ValueError(
                "verify: expected an index that was saved or loaded, got one in memory"
            )
        folder = self._folder

        def check(content: dict[str, Any]) -> None:
            for entry in _files.files_in(content):
                _files.check_array(folder, entry)

        _files.read_with_files(folder, check)

    @property
    def _itemsize(self) -> int:
        return 1 if self.dtype == "int8" else np.dtype(self.dtype).itemsize

    def _fitted(self, rows: np.ndarray) -> Profiles | Norms:
        """Return what gives the features of rows, fitted to the first that there are."""
        return fit(self.metric, rows, self._rank, self._itemsize)

    def _read_ids(self, ids: Any, count: int) -> np.ndarray:
        """Return the names of rows to be added, and check them."""
        kind = next((segment.ids.dtype.kind for segment in self._segments), None)
        if ids is None and kind == "U":
            raise ValueError("ids: expected names as the index has, got none")
        names = next_ids(self._next_id, count) if ids is None else read_ids(ids)
        if names.shape != (count,):
            raise ValueError(
                f"ids: expected {count} whole numbers or texts, got shape {names.shape}"
            )
        check_kind(names, kind)
        check_unique(names)
        for segment in self._segments:
            known = names[np.isin(names, segment.ids[segment.alive])]
            if len(known):
                raise ValueError(
                    f"ids: expected new ones, got {known[0].item()!r}, which is there; remove it "
                    "first"
                )
        return names

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle holds: rows are read into it."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy, with a lock of its own."""
        vars(self).update(state, _lock=threading.Lock())


def _next_id(least: int, ids: np.ndarray) -> int:
    """Return the number after all that there were."""
    return max(least, int(ids.max()) + 1) if ids.dtype.kind == "i" and len(ids) else least


def _without(segment: Segment, gone: np.ndarray) -> Segment:
    """Return a segment without some rows, itself where there is none of them."""
    if not gone.any():
        return segment
    files = {name: x for name, x in segment.files.items() if name != "alive"}
    return segment._replace(alive=segment.alive & ~gone, files=files)


def _masks(segments: tuple[Segment, ...], where: Any, name: str = "where") -> list[np.ndarray]:
    """Return which rows of each segment are meant by a mask or by ids."""
    if where is None:
        return [segment.alive for segment in segments]
    chosen = np.atleast_1d(np.asarray(where))
    counts = [int(segment.alive.sum()) for segment in segments]
    if chosen.dtype == bool:
        if chosen.shape != (sum(counts),):
            raise ValueError(
                f"{name}: expected a mask of {sum(counts)} bools, got shape {chosen.shape}"
            )
        masks, start = [], 0
        for segment, count in zip(segments, counts, strict=True):
            mask = segment.alive.copy()
            mask[mask] = chosen[start : start + count]
            masks.append(mask)
            start += count
        return masks
    ids = read_ids(chosen, name)
    if not ids.size:
        return [np.zeros(len(segment.ids), bool) for segment in segments]
    check_kind(ids, segments[0].ids.dtype.kind if segments else None, name)
    return [segment.alive & np.isin(segment.ids, ids) for segment in segments]


def _search_segment(
    metric: Metric,
    rows: np.ndarray,
    segment: Segment,
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


def _gathered(blocks: Iterable[Any]) -> Iterator[tuple[np.ndarray | None, np.ndarray]]:
    """Yield ids and rows, small blocks put together; some have ids only if all have."""
    ids: list[np.ndarray] = []
    held: list[np.ndarray] = []
    kind: str | None = None
    with_ids: bool | None = None
    for block in blocks:
        if isinstance(block, tuple) and len(block) != 2:
            raise ValueError(
                f"blocks: expected arrays, or pairs (ids, array), got a tuple of {len(block)}"
            )
        names, rows = block if isinstance(block, tuple) else (None, block)
        rows = _read_vectors(rows)
        found = None if names is None else read_ids(names)
        if not len(rows):
            continue
        with_ids = found is not None if with_ids is None else with_ids
        if with_ids != (found is not None):
            raise ValueError("blocks: expected ids with each block or with none")
        if found is not None:
            check_kind(found, kind)
            kind = found.dtype.kind
            ids.append(found)
        held.append(rows)
        if sum(x.nbytes for x in held) >= BLOCK:
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


def _read_rank(rank: int | None, metric: Metric, width: int) -> int | None:
    if rank is None:
        return None
    if not metric.sorts:
        raise ValueError(
            f"rank: expected None for {metric.name}, which does not sort, got {rank!r}"
        )
    if read_k(rank, "rank") > width:
        raise ValueError(f"rank: expected at most {width}, as vectors are that wide, got {rank!r}")
    return int(rank)


def _check_width(rows: np.ndarray, width: int) -> None:
    if rows.shape[1] != width:
        raise ValueError(f"vectors: expected {width} components as the others, got {rows.shape[1]}")

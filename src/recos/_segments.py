"""Segments: rows with what is known of them, in memory and as files of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recos import _files
from recos._blocks import run_blocks, spans
from recos._ids import check_unique
from recos._scan import make_corpus
from recos._stores import Codes, Plain, Store, encode
from recos.metrics import Weights
from recos.profiles import Features, Norms, Profiles, describe
from recos.transforms import Transform

BLOCK = 2**25  # bytes of rows that are read, described and written at a time


class Segment(NamedTuple):
    """Some rows: where they lie, their ids, which of them are still there, and their files."""

    corpus: Any  # a Corpus, or what ``_device`` keeps
    ids: np.ndarray
    alive: np.ndarray
    files: dict[str, Any]


def described(
    shape: Profiles | Norms, dtype: str, keep: bool, rows: np.ndarray, first: int = 0
) -> tuple[Store, Features]:
    """Return a copy of rows, or codes of them, and what is known of it."""
    real = np.dtype(np.float32)  # which holds float16 exactly
    copies = np.empty(rows.shape, np.float16 if dtype == "float16" else real)
    if copies.itemsize < rows.itemsize:
        _check_fits(rows, copies.dtype)
    features = describe(shape, rows, real, name="vectors", first=first, out=copies)
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


def alive_blocks(segment: Segment) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield ids and rows of what is still there."""
    which = np.flatnonzero(segment.alive)
    store = segment.corpus.store
    for part in spans(len(which), max(1, BLOCK // (4 * store.width))):
        yield segment.ids[which[part]], store.exact(which[part])


def write_blocks(
    folder: Path,
    shape: Profiles | Norms,
    dtype: str,
    keep: bool,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> dict[str, Any]:
    """Write rows and what is known of them, block by block, and return what the manifest says."""
    token, ids, count = _files.new_token(), [], 0
    files: dict[str, _files.ArrayFile] = {}
    try:
        for names, rows in blocks:
            store, features = described(shape, dtype, keep, rows, count)
            ids.append(names)
            count += len(rows)
            for name, array in _arrays(store, features).items():
                if name not in files:
                    files[name] = _files.ArrayFile(folder, token, name)
                files[name].append(array)
        found = np.concatenate(ids)
        check_unique(found)
        entries = {name: file.finish() for name, file in files.items()}
        return entries | {"ids": _write_ids(folder, token, found)}
    except BaseException:
        for unfinished in files.values():
            unfinished.file.close()
            unfinished.path.unlink(missing_ok=True)
        raise


def _write_ids(folder: Path, token: str, ids: np.ndarray) -> dict[str, Any]:
    """Return what the manifest says of ids; those that follow one another need no file."""
    if len(ids) and ids.dtype.kind == "i":
        first, last = int(ids[0]), int(ids[-1])
        if last - first == len(ids) - 1 and (np.diff(ids) == 1).all():
            return {"first": first, "shape": [len(ids)], "dtype": "<i8"}
    return _files.write_array(folder, token, "ids", ids)


def _read_ids(folder: Path, entry: dict[str, Any]) -> np.ndarray:
    if "first" in entry:
        return np.arange(entry["first"], entry["first"] + entry["shape"][0], dtype=np.int64)
    return _files.read_array(folder, entry)


def _arrays(store: Any, features: Features) -> dict[str, np.ndarray]:
    """Return the arrays that are kept on disk, by name."""
    found = store._asdict() | features._asdict()
    return {name: x for name, x in found.items() if isinstance(x, np.ndarray)}


def written(folder: Path, segment: Segment) -> Segment:
    """Return a segment all of whose arrays are in files of a folder."""
    token = _files.new_token()
    arrays = _arrays(segment.corpus.store, segment.corpus.features)
    if not segment.alive.all():
        arrays["alive"] = segment.alive
    missing = {name: x for name, x in arrays.items() if name not in segment.files}
    new = {name: _files.write_array(folder, token, name, x) for name, x in missing.items()}
    if "ids" not in segment.files:
        new["ids"] = _write_ids(folder, token, segment.ids)
    return segment._replace(files=segment.files | new)


def opened(folder: Path, files: dict[str, Any], shape: Profiles | Norms, *, mmap: bool) -> Segment:
    """Return a segment from its files; ids and what was removed are always read."""
    large = {name: x for name, x in files.items() if name not in ("ids", "alive")}
    found = {name: _files.read_array(folder, x, mmap=mmap) for name, x in large.items()}
    ids = _read_ids(folder, files["ids"])
    alive = np.ones(len(ids), bool)
    if "alive" in files:
        alive = _files.read_array(folder, files["alive"])
    features = Features(*(found[name] for name in Features._fields))
    store: Store = (
        Codes(found["codes"], found["scales"], found.get("originals"))
        if "codes" in found
        else Plain(found["rows"], np.dtype(np.float32))
    )
    return Segment(make_corpus(store, shape, features), ids, alive, files)


def write_shape(folder: Path, shape: Profiles | Norms | None) -> dict[str, Any]:
    """Write the basis of a shape, if it has one, and return what the manifest says of it."""
    arrays = shape._asdict() if isinstance(shape, Profiles) else {}
    token = _files.new_token()
    return {name: _files.write_array(folder, token, name, x) for name, x in arrays.items()}


def write_transform(folder: Path, transform: Transform | None) -> dict[str, Any]:
    """Write the arrays of a transform, and return what the manifest says of it."""
    if transform is None:
        return {}
    found: dict[str, Any] = _stored(folder, _files.new_token(), transform.to_dict())
    return found


def read_transform(folder: Path, found: dict[str, Any]) -> Transform | None:
    """Return a transform as the manifest describes it."""
    return Transform.from_dict(_restored(folder, found)) if found else None


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


def read_shape(folder: Path, found: dict[str, Any]) -> Profiles | Norms:
    """Return a shape as the manifest describes it."""
    if "even" in found:
        even, odd = (_files.read_array(folder, found[name]) for name in ("even", "odd"))
        return Profiles(even, odd)
    return Norms(Weights(*found["weights"]), found["middle"])

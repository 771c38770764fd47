"""Arrays in a folder: written beside, checked by checksums, taken into use by one rename.

A folder holds ``.npy`` files and a manifest that names those in use, with sizes and checksums. A
change writes new files, then replaces the manifest; files that it no longer names are removed. So
whenever a process is killed, the folder holds the state before or after the change.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from recos._blocks import run_blocks

MANIFEST = "recos-index.json"
VERSION = 2  # of an index with a transform; others are written as 1, which older readers know
_OURS = re.compile(r"recos-index\.json(\.\d+\.new)?|recos-[0-9a-f]{12}-\w+\.npy")
_CHUNK = 2**24  # bytes that one checksum stands for
_HEADER = 128  # bytes of a .npy header, for any number of rows


class DamagedIndexError(ValueError):
    """A file of a saved index is missing, cut off or changed."""


def make_folder(folder: Path) -> None:
    """Make a folder for an index, unless it holds something else."""
    folder.mkdir(parents=True, exist_ok=True)
    others = [path.name for path in folder.iterdir() if not _OURS.fullmatch(path.name)]
    if others:
        raise FileExistsError(
            f"{folder}: expected a new or empty folder or a saved index, found {min(others)!r}; "
            "choose another folder"
        )


def new_token() -> str:
    """Return a part of file names that no file has yet."""
    return secrets.token_hex(6)


class ArrayFile:
    """A ``.npy`` file of rows that is written block by block."""

    def __init__(self, folder: Path, token: str, name: str) -> None:
        self.path = folder / f"recos-{token}-{name}.npy"
        self.file = open(self.path, "xb")  # noqa: SIM115 - closed in finish
        self.file.write(bytes(_HEADER))
        self.rows, self.tail, self.dtype = 0, (), np.dtype(np.float32)

    def append(self, rows: np.ndarray) -> None:
        """Write some rows after those before."""
        rows = np.ascontiguousarray(rows)
        self.tail, self.dtype = rows.shape[1:], rows.dtype.newbyteorder("<")
        self.file.write(rows.astype(self.dtype, copy=False).data)
        self.rows += len(rows)

    def finish(self) -> dict[str, Any]:
        """Complete the file, on the disk, and return what the manifest says of it."""
        shape = (self.rows, *self.tail)
        self.file.seek(0)
        self.file.write(_header(shape, self.dtype))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        return {
            "file": self.path.name,
            "shape": list(shape),
            "dtype": self.dtype.str,
            "checksums": _checksums(self.path),
        }


def write_array(folder: Path, token: str, name: str, array: np.ndarray) -> dict[str, Any]:
    """Write a whole array and return what the manifest says of it."""
    file = ArrayFile(folder, token, name)
    file.append(array)
    return file.finish()


def read_array(folder: Path, entry: dict[str, Any], *, mmap: bool = False) -> np.ndarray:
    """Return an array of the folder; only what is not mapped is compared with its checksums."""
    path, shape, dtype = folder / entry["file"], tuple(entry["shape"]), np.dtype(entry["dtype"])
    size = _HEADER + int(np.prod(shape)) * dtype.itemsize
    if not path.is_file():
        raise DamagedIndexError(f"{path}: expected a file of {size} bytes, found none; {_REMEDY}")
    if path.stat().st_size != size:
        raise DamagedIndexError(
            f"{path}: expected {size} bytes, found {path.stat().st_size}; {_REMEDY}"
        )
    if not mmap:
        check_array(folder, entry)
        return np.fromfile(path, dtype, offset=_HEADER).reshape(shape)
    with path.open("rb") as file:
        if file.read(_HEADER) != _header(shape, dtype):
            raise DamagedIndexError(f"{path}: its header was changed; {_REMEDY}")
    if not all(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", _HEADER, shape).view(np.ndarray)


def check_array(folder: Path, entry: dict[str, Any]) -> None:
    """Raise if a file is not what was written."""
    path = folder / entry["file"]
    if not path.is_file() or _checksums(path) != entry["checksums"]:
        raise DamagedIndexError(f"{path}: not what was written; {_REMEDY}")


_REMEDY = "restore the folder from a copy, or build the index again"


def _header(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape!r}, }}"
    return (
        b"\x93NUMPY\x01\x00"
        + (_HEADER - 10).to_bytes(2, "little")
        + (text.ljust(_HEADER - 11) + "\n").encode("ascii")
    )


def _checksums(path: Path) -> list[int]:
    size = path.stat().st_size

    def checksum(start: int) -> int:
        with path.open("rb") as file:
            file.seek(start)
            return zlib.crc32(file.read(_CHUNK))

    return [size, *run_blocks(checksum, range(0, size, _CHUNK))]


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Take files into use, and remove those that are no longer."""
    beside = folder / f"{MANIFEST}.{os.getpid()}.new"
    with beside.open("wb") as file:
        file.write(_manifest_bytes(content))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, folder / MANIFEST)
    sync_folder(folder)
    remove_unused(folder, content)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a folder holds."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder}: expected a folder that Index.save or `recos index build` wrote, found no "
            f"{MANIFEST} in it"
        )
    data = path.read_bytes()
    try:
        found = json.loads(data)
        version, content = found["version"], found["index"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedIndexError(f"{path}: not a manifest ({error}); {_REMEDY}") from error
    newer = isinstance(version, int) and version > VERSION
    if newer and data == _manifest_bytes(content, version):
        raise ValueError(
            f"{path}: expected format version {VERSION} or older, got {version}; install a newer "
            "recos"
        )
    if data != _manifest_bytes(content):
        raise DamagedIndexError(f"{path}: not what was written; {_REMEDY}")
    return dict(content)


def _manifest_bytes(content: dict[str, Any], version: int | None = None) -> bytes:
    version = version or (VERSION if "transform" in content else 1)
    body = json.dumps(content, sort_keys=True, ensure_ascii=True)
    found = {"format": "recos index", "version": version, "checksum": zlib.crc32(body.encode())}
    return json.dumps(found | {"index": content}, sort_keys=True, indent=1).encode() + b"\n"


def files_in(content: Any) -> Iterable[dict[str, Any]]:
    """Yield all entries of arrays in a manifest."""
    if isinstance(content, dict):
        if "checksums" in content:
            yield content
        else:
            for value in content.values():
                yield from files_in(value)
    elif isinstance(content, list):
        for value in content:
            yield from files_in(value)


def remove_unused(folder: Path, content: dict[str, Any]) -> None:
    """Remove the arrays that a manifest does not name, and manifests that were never completed."""
    used = {entry["file"] for entry in files_in(content)}
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in (MANIFEST, *used):
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make sure that names of files are on the disk."""
    if os.name == "posix":  # elsewhere folders cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

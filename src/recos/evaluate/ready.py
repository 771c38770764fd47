"""Embeddings that are there already: .npy, .parquet or .safetensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recos.evaluate._extras import load
from recos.evaluate._hashes import file_hash

SUFFIXES = (".npy", ".parquet", ".safetensors")


class ReadyVectors:
    r"""Rows of a file, found by their texts where it has them, else by their order.

    Texts are a column of text in a parquet file, or the lines of a file with the same name that
    ends in ``.txt``. Without texts, ``encode`` must be asked for as many texts as there are rows,
    in their order: for pairs, all first texts, then all second ones; for retrieval, all queries,
    then all documents.

    Parameters
    ----------
    path : pathlib.Path
        ``.npy``, ``.parquet`` with a column of lists, or ``.safetensors`` with one matrix.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.npy"
    >>> np.save(path, np.eye(2, dtype=np.float32))
    >>> _ = path.with_suffix(".txt").write_text("one\ntwo\n")
    >>> ReadyVectors(path).encode(["two", "two", "one"])
    array([[0., 1.],
           [0., 1.],
           [1., 0.]], dtype=float32)
    """

    def __init__(self, path: Path) -> None:
        rows, texts = _READERS[path.suffix](path)
        if rows.ndim != 2 or rows.dtype.kind not in "fiu":
            raise ValueError(
                f"{path}: expected a matrix of numbers, of shape (texts, components), got shape "
                f"{rows.shape} of {rows.dtype}"
            )
        beside = path.with_suffix(".txt")
        if texts is None and beside.is_file():
            texts = beside.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if texts is not None and len(texts) != len(rows):
            raise ValueError(
                f"{path}: expected a text for each of {len(rows)} rows, got {len(texts)}"
            )
        self.path, self.rows, self.name = path, rows, path.stem
        self.place = None if texts is None else {text: row for row, text in enumerate(texts)}
        own = json.dumps([file_hash(path), texts])  # the same rows may get other texts beside them
        self.identity = hashlib.sha256(own.encode()).hexdigest()
        self.facts: dict[str, Any] = {"checkpoint": path.name, "dimension": rows.shape[1]}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""
        if self.place is None:
            if len(texts) != len(self.rows):
                raise ValueError(
                    f"{self.path}: expected {len(texts)} rows, one for each text, got "
                    f"{len(self.rows)}; put the texts, one a line, into {self.path.stem}.txt "
                    "beside it, and rows are found by them"
                )
            return np.asarray(self.rows, np.float32)
        missing = [text for text in texts if text not in self.place]
        if missing:
            raise ValueError(
                f"{self.path}: expected a row for each text, found none for {len(missing)} of "
                f"{len(texts)}, such as {missing[0][:80]!r}"
            )
        return np.asarray(self.rows[[self.place[text] for text in texts]], np.float32)


def _read_npy(path: Path) -> tuple[np.ndarray, None]:
    try:
        return np.load(path, allow_pickle=False), None
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: expected an array that numpy.save wrote ({error})") from error


def _read_safetensors(path: Path) -> tuple[np.ndarray, None]:
    library = load("safetensors", "encoders")
    try:
        arrays = load("safetensors.numpy", "encoders").load_file(path)
    except library.SafetensorError as error:
        raise ValueError(f"{path}: expected a safetensors file ({error})") from error
    if len(arrays) != 1:
        raise ValueError(f"{path}: expected one matrix, got {', '.join(arrays) or 'none'}")
    [rows] = arrays.values()
    return rows, None


def _read_parquet(path: Path) -> tuple[np.ndarray, list[str] | None]:
    arrow = load("pyarrow")
    try:
        table = load("pyarrow.parquet").read_table(path)
    except arrow.ArrowException as error:
        raise ValueError(f"{path}: expected a parquet file ({error})") from error
    kinds = {field.name: str(field.type) for field in table.schema}
    lists = [name for name, kind in kinds.items() if "list" in kind]
    texts = [name for name, kind in kinds.items() if "string" in kind]
    if len(lists) != 1 or len(texts) > 1:
        raise ValueError(
            f"{path}: expected one column of lists and at most one of text, got "
            f"{', '.join(f'{name} ({kind})' for name, kind in kinds.items())}"
        )
    lengths = set(table[lists[0]].combine_chunks().value_lengths().to_pylist())
    if len(lengths) != 1 or None in lengths:
        raise ValueError(f"{path}, column {lists[0]}: expected lists of one length, got {lengths}")
    rows = np.array(table[lists[0]].to_pylist())
    return rows, table[texts[0]].to_pylist() if texts else None


_READERS = {".npy": _read_npy, ".parquet": _read_parquet, ".safetensors": _read_safetensors}

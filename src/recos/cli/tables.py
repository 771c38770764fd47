"""Vectors from .npy and parquet files, block by block, and tables to parquet and JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np

_BLOCK = 2**25  # bytes of rows that are read at a time

Table = dict[str, np.ndarray]
Block = tuple[np.ndarray | None, np.ndarray]  # ids, rows


class Vectors(NamedTuple):
    """A file of vectors: how many there are, and how to read them with their ids."""

    size: int
    blocks: Callable[[], Iterator[Block]]
    mapped: np.ndarray | None
    ids: Callable[[slice], np.ndarray] | None

    def whole(self) -> Block:
        """Return all ids and rows: mapped where the file allows it, else read into memory."""
        if self.mapped is not None:
            return self.ids and self.ids(slice(None)), self.mapped
        ids, rows = zip(*self.blocks(), strict=True)
        return None if ids[0] is None else np.concatenate(ids), np.concatenate(rows)


def open_vectors(path: Path, *, column: str | None = None, ids: str | None = None) -> Vectors:
    """Return the vectors of a file, which is not read yet.

    ``ids`` is a column of a parquet file, or a file with as many ids: .npy, or one in each line.
    """
    if path.suffix not in (".npy", ".parquet"):
        raise ValueError(f"{path}: expected a .npy or .parquet file, by its name")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a file of vectors, found none; check the path")
    if path.suffix == ".parquet":
        return _open_parquet(path, column, ids)
    if column is not None:
        raise ValueError(f"{path}: expected no --column for a .npy file, got {column!r}")
    rows = _map(path)
    if rows.ndim != 2 or not rows.shape[1] or rows.dtype.kind not in "fiu":
        raise ValueError(
            f"{path}: expected a matrix of numbers, of shape (rows, components), got shape "
            f"{rows.shape} of {rows.dtype}"
        )
    names = None if ids is None else _read_ids(ids, len(rows), [])
    step = max(1, _BLOCK // (rows.shape[1] * rows.itemsize))

    def blocks() -> Iterator[Block]:
        for start in range(0, max(1, len(rows)), step):  # without rows, one empty block
            part = slice(start, start + step)
            yield names and names(part), rows[part]

    return Vectors(len(rows), blocks, rows, names)


def _map(path: Path) -> np.ndarray:
    try:
        return np.lib.format.open_memmap(path, mode="r").view(np.ndarray)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path}: expected an array that numpy.save wrote, got something else ({error}); write "
            "it anew"
        ) from error


def _read_ids(ids: str, count: int, columns: list[str]) -> Callable[[slice], np.ndarray]:
    path = Path(ids)
    if not path.is_file():
        known = f" or one of the columns {', '.join(columns)}" if columns else ""
        raise ValueError(f"--ids: expected a file of ids{known}, got {ids!r}, which is neither")
    if path.suffix == ".npy":
        names = _map(path)
    else:
        try:
            names = np.array(path.read_text(encoding="utf-8").splitlines(), dtype=np.str_)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: expected text in UTF-8, one id in each line, got something else ({error})"
            ) from error
    if names.shape != (count,):
        raise ValueError(
            f"{path}: expected {count} ids, one for each row, got {'x'.join(map(str, names.shape))}"
        )
    return lambda part: names[part]


def _open_parquet(path: Path, column: str | None, ids: str | None) -> Vectors:
    pyarrow = _load_pyarrow()
    try:
        file = pyarrow.parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
    except pyarrow.ArrowException as error:
        raise ValueError(
            f"{path}: expected a parquet file, got something else ({error})"
        ) from error
    schema, count = file.schema_arrow, file.metadata.num_rows
    lists = [field.name for field in schema if _holds_vectors(pyarrow.types, field.type)]
    if (column or (lists[0] if len(lists) == 1 else "")) not in lists:
        got = f"{column!r}" if column else "several" if lists else "none"
        raise ValueError(
            f"{path}: expected a column of lists of numbers, got {got}; choose with --column among "
            f"{', '.join(lists) or 'others: it has ' + ', '.join(schema.names)}"
        )
    if not count:
        raise ValueError(f"{path}: expected at least one row, got none")
    chosen = column or lists[0]
    by_column = ids is not None and ids in schema.names
    names = None if ids is None or by_column else _read_ids(ids, count, schema.names)
    wanted = [chosen, ids] if by_column else [chosen]

    def blocks() -> Iterator[Block]:
        first = next(file.iter_batches(1, columns=[chosen])).column(chosen)
        width, start = len(first.flatten()), 0
        for batch in file.iter_batches(max(1, _BLOCK // (8 * max(1, width))), columns=wanted):
            part = slice(start, start + len(batch))
            rows = _read_rows(batch.column(chosen), width, f"{path}, column {chosen}", start)
            if by_column:
                yield _read_id_column(batch.column(ids), f"{path}, column {ids}"), rows
            else:
                yield names and names(part), rows
            start = part.stop

    return Vectors(count, blocks, None, names)


def _load_pyarrow() -> Any:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "pyarrow":
            raise
        raise ModuleNotFoundError(
            "pyarrow is not installed, which parquet files need: pip install 'recos[cli]'"
        ) from None
    return pyarrow


def _holds_vectors(types: Any, kind: Any) -> bool:
    lists: bool = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return lists and bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def _read_rows(found: Any, width: int, where: str, start: int) -> np.ndarray:
    lengths = found.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        length = lengths[wrong[0]]
        got = "null" if length < 0 else f"{length}"
        raise ValueError(
            f"{where}: expected {width} numbers as in row 0, got {got} in row {start + wrong[0]}"
        )
    values = found.flatten()
    if values.null_count:
        row = start + int(values.is_null().to_numpy(zero_copy_only=False).argmax()) // width
        raise ValueError(f"{where}: expected numbers, got null in row {row}")
    rows: np.ndarray = values.to_numpy(zero_copy_only=False).reshape(len(found), width)
    return rows


def _read_id_column(found: Any, where: str) -> np.ndarray:
    if found.null_count:
        raise ValueError(f"{where}: expected an id for each row, got null")
    ids: np.ndarray = found.to_numpy(zero_copy_only=False)
    return ids.astype(np.str_) if ids.dtype == object else ids


class TableFile:
    """A parquet or JSON lines file, written beside and renamed: whole or not there."""

    def __init__(self, path: Path) -> None:
        self.path, self.beside = path, path.with_name(f".{path.name}.{os.getpid()}.new")
        self.rows = 0
        self.writer: Any = None
        self.pyarrow: Any = None
        if path.suffix not in (".parquet", ".jsonl"):
            raise ValueError(f"{path}: expected a .parquet or .jsonl file, by its name")
        if path.suffix == ".parquet":
            self.pyarrow = _load_pyarrow()
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path}: expected a folder {path.parent}, found none; make it")
        self.file: IO[bytes] = self.beside.open("wb")

    def __enter__(self) -> TableFile:
        """Return the file."""
        return self

    def write(self, table: Table) -> None:
        """Write some rows after those before."""
        if self.pyarrow is None:
            self.file.writelines(json.dumps(row).encode() + b"\n" for row in records(table))
        else:
            rows = self.pyarrow.table(table)
            self.writer = self.writer or self.pyarrow.parquet.ParquetWriter(self.file, rows.schema)
            self.writer.write_table(rows)
        self.rows += len(next(iter(table.values())))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Take the file into use, or remove it after an error."""
        try:
            if self.writer is not None:
                self.writer.close()
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            if kind is None:
                self.beside.replace(self.path)
        finally:
            self.file.close()
            self.beside.unlink(missing_ok=True)


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as JSON knows them."""
    for row in zip(*(column.tolist() for column in table.values()), strict=True):
        yield dict(zip(table, row, strict=True))

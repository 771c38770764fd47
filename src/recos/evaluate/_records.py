"""Rows of files as dictionaries: TSV, CSV, JSON lines (also gzipped) and parquet."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recos.evaluate._extras import load

SUFFIXES = (".tsv", ".csv", ".jsonl", ".jsonl.gz", ".parquet")

Record = dict[str, Any]
Place = str  # where a record was: the file and its line or row


def suffix_of(path: Path) -> str:
    """Return which of the kinds of file a path names, or an empty text."""
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), "")


def read_records(
    path: Path, columns: tuple[str, ...], other_names: dict[str, str] | None = None
) -> Iterator[tuple[Place, Record]]:
    """Yield each record of a file with its place; columns with other names are renamed.

    A TSV or CSV file without a header, which is one whose first line has no such name, has exactly
    ``columns``, in this order.
    """
    names = dict.fromkeys(columns) | (other_names or {})
    suffix = suffix_of(path)
    if suffix == ".parquet":
        records = _parquet(path)
    elif suffix.startswith(".jsonl"):
        records = _json_lines(path)
    else:
        records = _separated(path, columns, set(names))
    for place, record in records:
        yield place, {names.get(key) or key: value for key, value in record.items()}


def _separated(
    path: Path, columns: tuple[str, ...], known: set[str]
) -> Iterator[tuple[Place, Record]]:
    names: list[str] | None = None
    for place, cells in _cells(path):
        if names is None:
            header = [cell.strip().lower() for cell in cells]
            names = header if known & set(header) else list(columns)
            if names is header:
                _check_header(place, header)
                continue
        if len(cells) != len(names):
            raise ValueError(
                f"{place}: expected {len(names)} columns ({', '.join(names)}), got {len(cells)}"
            )
        yield place, dict(zip(names, cells, strict=True))


def _check_header(place: Place, header: list[str]) -> None:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise ValueError(f"{place}: expected columns of different names, got {twice[0]!r} twice")


def _cells(path: Path) -> Iterator[tuple[Place, list[str]]]:
    """Yield the cells of each line that is not empty. A TSV file knows no quotes."""
    if path.suffix == ".tsv":
        for number, line in _lines(path):
            yield f"{path}, line {number}", line.split("\t")
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for cells in reader:
                if cells:
                    yield f"{path}, line {reader.line_num}", cells
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: not CSV ({error})") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: expected UTF-8 text ({error})") from error
            if text:
                yield number, text


def _json_lines(path: Path) -> Iterator[tuple[Place, Record]]:
    for number, line in _lines(path):
        place = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{place}: expected a JSON object ({error})") from error
        if not isinstance(record, dict):
            raise ValueError(f"{place}: expected a JSON object, got {type(record).__name__}")
        yield place, record


def _parquet(path: Path) -> Iterator[tuple[Place, Record]]:
    pyarrow = load("pyarrow")
    parquet = load("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(path)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: expected a parquet file, got another ({error})") from error
    row = 0
    with file:
        for batch in file.iter_batches():
            for record in batch.to_pylist():
                yield f"{path}, row {row}", record
                row += 1

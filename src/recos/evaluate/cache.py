"""Vectors of texts: encoded in blocks, and each block kept as soon as it is finished.

A block is a file of its own, written beside and renamed, whose name is the hash of its content. So
a run that was killed loses the block it was at, and a file that was cut off or altered is not read.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recos._blocks import Progress, spans
from recos.evaluate._hashes import text_key
from recos.evaluate.encoders import Encoder
from recos.evaluate.ready import ReadyVectors


def embed(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    cache: str | Path | None = None,
    progress: bool | None = None,
    block: int = 256,
) -> np.ndarray:
    """Return the vectors of texts; each different text is encoded once.

    Parameters
    ----------
    encoder : Encoder
        From `find_encoder`.
    texts : sequence of str
        In any order, repeated or not.
    cache : str or path, optional
        A folder. Vectors that it holds are read, and those it does not are written, block by block:
        after a kill, the next call encodes what was not finished.
    progress : bool, optional
        Whether to show how far it is and how long it will take. By default on a terminal, and once
        it has taken two seconds.
    block : int
        How many texts are encoded and written at a time.

    Returns
    -------
    numpy.ndarray of float32, shape (len(texts), d)
        One row for each text.

    Examples
    --------
    >>> from recos.evaluate.encoders import find_encoder
    >>> embed(find_encoder(lambda texts: [[len(text)] for text in texts]), ["a", "bcd", "a"])
    array([[1.],
           [3.],
           [1.]], dtype=float32)
    """
    if not len(texts):
        raise ValueError("texts: expected at least one, got none")
    if isinstance(encoder, ReadyVectors):
        return _checked(encoder, encoder.encode(texts), texts)
    keys = [text_key(text) for text in texts]
    folder = None
    if cache is not None and encoder.identity is not None:
        folder = Path(cache) / hashlib.sha256(encoder.identity.encode()).hexdigest()[:32]
    rows = {} if folder is None else _read_blocks(folder)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
    order, blocks = list(missing), spans(len(missing), block)
    shown = Progress(len(blocks), f"Encoding with {encoder.name}", progress)
    for part in blocks:
        wanted = [missing[key] for key in order[part]]
        found = _checked(encoder, encoder.encode(wanted), wanted)
        if folder is not None:
            _write_block(folder, order[part], found)
        rows.update(zip(order[part], found, strict=True))
        shown.advance()
    return np.stack([rows[key] for key in keys])


def _checked(encoder: Encoder, found: Any, texts: Sequence[str]) -> np.ndarray:
    """Return rows as float32, or raise an error that names the text that has none."""
    rows = np.asarray(found)
    if rows.ndim != 2 or len(rows) != len(texts) or rows.dtype.kind not in "fiu":
        raise ValueError(
            f"{encoder.name}: expected {len(texts)} rows of numbers, one for each text, got shape "
            f"{rows.shape} of {rows.dtype}"
        )
    with np.errstate(over="ignore"):  # what overflows is named below
        rows = rows.astype(np.float32, copy=False)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        text = texts[int(finite.argmin())]
        more = f" and {np.sum(~finite) - 1} more of {len(texts)}" if np.sum(~finite) > 1 else ""
        raise ValueError(
            f"{encoder.name}: expected finite numbers, got NaN or infinity for the text "
            f"{text[:200]!r}{more}"
        )
    return rows


def _read_blocks(folder: Path) -> dict[bytes, np.ndarray]:
    """Return all rows that a folder holds, by the keys of their texts."""
    rows: dict[bytes, np.ndarray] = {}
    for path in sorted(folder.glob("*.npy")):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() == path.stem:
            table = np.load(io.BytesIO(content), allow_pickle=False)
            rows.update(zip(map(bytes, table["key"]), table["row"], strict=True))
    return rows


def _write_block(folder: Path, keys: Sequence[bytes], rows: np.ndarray) -> None:
    table = np.empty(len(rows), [("key", "u1", (16,)), ("row", "<f4", rows.shape[1:])])
    table["key"], table["row"] = np.frombuffer(b"".join(keys), "u1").reshape(-1, 16), rows
    content = io.BytesIO()
    np.save(content, table, allow_pickle=False)
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(content.getbuffer()).hexdigest()
    beside = folder / f".{name}.{os.getpid()}.new"
    beside.write_bytes(content.getbuffer())
    beside.replace(folder / f"{name}.npy")

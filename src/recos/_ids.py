"""The ids of rows: whole numbers or texts, each once."""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = {"U": "texts", "i": "whole numbers"}
_LARGEST = 2**63 - 1


def read_ids(ids: Any, name: str = "ids") -> np.ndarray:
    """Return ids as texts or as int64; raise where they are neither.

    Lists of Python objects, as columns of pandas are, are read by what is in them.
    """
    found = np.asarray(ids)
    if found.dtype.kind == "T":  # texts of any length, which NumPy turns into others only so
        found = found.astype(object)
    if found.dtype == object and all(isinstance(x, str) for x in found.flat):
        found = found.astype(np.str_)
    elif found.dtype == object:
        whole = all(isinstance(x, (int, np.integer)) and type(x) is not bool for x in found.flat)
        found = np.array(found.tolist()) if whole else found
    if found.size and found.dtype.kind not in "iuU":
        raise ValueError(f"{name}: expected whole numbers or texts, got {found.dtype}")
    if found.dtype.kind == "u" and found.max(initial=0) > _LARGEST:
        raise ValueError(f"{name}: expected whole numbers up to {_LARGEST}, got {found.max()}")
    return found if found.dtype.kind == "U" else found.astype(np.int64)


def next_ids(first: int, count: int) -> np.ndarray:
    """Return the numbers that rows without ids have."""
    if first + count - 1 > _LARGEST:
        raise ValueError(f"ids: expected ids of {count} rows after number {first - 1}, got none")
    return np.arange(first, first + count, dtype=np.int64)


def check_kind(ids: np.ndarray, kind: str | None, name: str = "ids") -> None:
    """Raise for ids of another kind than those there are."""
    if ids.size and kind is not None and ids.dtype.kind != kind:
        raise ValueError(
            f"{name}: expected {KINDS[kind]} as the index has, got {KINDS[ids.dtype.kind]}"
        )


def check_unique(ids: np.ndarray) -> None:
    """Raise for an id that comes twice."""
    ascending = np.sort(ids)
    again = ascending[1:][ascending[1:] == ascending[:-1]]
    if len(again):
        raise ValueError(f"ids: expected each once, got {again[0].item()!r} twice")

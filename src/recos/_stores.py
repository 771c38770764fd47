"""Where the rows of a corpus lie: as they are, or as 8-bit codes, with their originals or not."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

_FEW = 4  # queries up to which codes are multiplied as they are, and no float32 copy is made


class Store(Protocol):
    """Rows to search."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype to score exactly in."""
        ...

    @property
    def width(self) -> int:
        """How many components a row has."""
        ...

    def multiply(self, queries: np.ndarray, part: slice, out: np.ndarray) -> None:
        """Write the products of float32 queries with some rows, made in float32."""
        ...

    def exact(self, which: np.ndarray) -> np.ndarray:
        """Return some rows as they are stored."""
        ...


class Plain(NamedTuple):
    """Rows in memory or in a memory map, of any real dtype."""

    rows: Any
    dtype: np.dtype

    @property
    def width(self) -> int:
        """How many components a row has."""
        return int(self.rows.shape[1])

    def multiply(self, queries: np.ndarray, part: slice, out: np.ndarray) -> None:
        """Write the products of float32 queries with some rows, made in float32."""
        with np.errstate(over="ignore", invalid="ignore"):  # nothing is concluded from overflow
            np.matmul(queries, np.ascontiguousarray(self.rows[part], np.float32).T, out=out)

    def exact(self, which: np.ndarray) -> np.ndarray:
        """Return some rows as they are stored."""
        return np.ascontiguousarray(self.rows[which], self.dtype)


class Codes(NamedTuple):
    """Rows as int8 codes times a scale each; ``originals`` are None where they were not kept."""

    codes: np.ndarray
    scales: np.ndarray
    originals: Any = None

    @property
    def dtype(self) -> np.dtype:
        """The dtype to score exactly in."""
        return np.dtype(np.float32)

    @property
    def width(self) -> int:
        """How many components a row has."""
        return int(self.codes.shape[1])

    def multiply(self, queries: np.ndarray, part: slice, out: np.ndarray) -> None:
        """Write the products of float32 queries with some rows, made in float32."""
        if len(queries) <= _FEW:
            from recos._kernels import sums  # noqa: PLC0415 - loads Numba

            sums.code_products(queries, np.ascontiguousarray(self.codes[part]), out)
        else:
            np.matmul(queries, self.codes[part].astype(np.float32).T, out=out)
        out *= self.scales[part]

    def exact(self, which: np.ndarray) -> np.ndarray:
        """Return some rows: the originals, or what the codes stand for."""
        if self.originals is not None:
            return np.ascontiguousarray(self.originals[which], self.dtype)
        rows: np.ndarray = self.codes[which] * self.scales[which, None]
        return rows


def encode(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the codes of rows, their scales, and the norm of what is lost of each.

    A scale is the 127th part of the largest number of a row, rounded up to a float32.
    """
    peak = np.abs(rows).max(axis=1).astype(np.float32)
    scales = np.maximum(peak / np.float32(127), np.float32(1e-37))
    codes = np.rint(rows / scales[:, None]).clip(-127, 127).astype(np.int8)
    lost = rows.astype(np.float64) - codes * scales[:, None].astype(np.float64)
    return codes, scales, np.sqrt(np.vecdot(lost, lost))

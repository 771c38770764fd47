"""Where the rows of a corpus lie, and their products with queries.

Rows lie as they are, or as int8 codes with their originals or not. Products with many queries are
made of codes where NumKong is installed, three times as fast as those of float32: codes are made on
the way where there are none. What codes leave out is part of how far a product may be off.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

_FEW = 4  # queries up to which codes are read as they lie, and no float32 copy is made
_MANY = 64  # queries from which on making codes of the rows is worth it
# What rounding adds to how far a cosine made of codes may be off.
_ROUNDING = np.float32(64 * 2.0**-24)


class Coded(NamedTuple):
    """Codes of rows, the number that each row's are to be multiplied with, and what they lose."""

    codes: np.ndarray
    scales: np.ndarray
    lost: np.ndarray


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

    def coded(self, part: slice) -> Coded:
        """Return some rows as codes; what is lost that their errors do not tell."""
        ...

    def numbers(self, part: slice) -> np.ndarray | None:
        """Return some rows as float32 as they lie, if they do."""
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
            np.matmul(queries, self.numbers(part).T, out=out)

    def coded(self, part: slice) -> Coded:
        """Return some rows as codes, made now."""
        return encode(self.numbers(part))

    def numbers(self, part: slice) -> np.ndarray:
        """Return some rows as float32."""
        return np.ascontiguousarray(self.rows[part], np.float32)

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
            from recos._kernels import codes  # noqa: PLC0415 - loads Numba

            codes.products_with_numbers(queries, self.codes[part], self.scales[part], out)
        else:
            np.matmul(queries, self.codes[part].astype(np.float32).T, out=out)
            out *= self.scales[part]

    def coded(self, part: slice) -> Coded:
        """Return some rows as they lie; what they lost of their originals is in their errors."""
        return Coded(self.codes[part], self.scales[part], np.zeros(1, np.float32))

    def numbers(self, part: slice) -> np.ndarray | None:
        """Return some originals, if they were kept."""
        return None if self.originals is None else np.ascontiguousarray(self.originals[part])

    def exact(self, which: np.ndarray) -> np.ndarray:
        """Return some rows: the originals, or what the codes stand for."""
        if self.originals is not None:
            return np.ascontiguousarray(self.originals[which], self.dtype)
        rows: np.ndarray = self.codes[which] * self.scales[which, None]
        return rows


def encode(rows: np.ndarray) -> Coded:
    """Return finite float32 rows as codes: each number as a 127th of the largest of its row."""
    from recos._kernels import codes  # noqa: PLC0415 - loads Numba

    made, numbers = np.empty(rows.shape, np.int8), np.empty((2, len(rows)), np.float32)
    codes.encode(rows, made, numbers[0], numbers[1])
    return Coded(made, numbers[0], numbers[1])


@cache
def multiplies_codes() -> bool:
    """Whether NumKong is installed, which multiplies codes."""
    try:
        import numkong  # noqa: F401, PLC0415 - optional, and keeps start-up short
    except ImportError:
        return False
    return True


def worth_coding(queries: int) -> bool:
    """Whether products with so many queries are faster made of codes."""
    return queries >= _MANY and multiplies_codes()


def multiply_codes(queries: Coded, rows: Coded, out: np.ndarray) -> None:
    """Write the products of queries and rows that codes stand for."""
    import numkong  # noqa: PLC0415 - optional

    from recos._kernels import codes  # noqa: PLC0415 - loads Numba

    products = numkong.dots_packed(queries.codes, numkong.dots_pack(rows.codes, "int8"))
    codes.scale_products(np.asarray(products), queries.scales, rows.scales, out)


def errors_of_codes(
    queries: Coded, rows: Coded, over: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far cosines made of codes may be off, for each row and for each query.

    With unit q = p + a and v = w + b, q·v - p·w = a·v + p·b is at most ‖a‖ ‖v‖ + ‖p‖ ‖b‖.
    """
    doubt = queries.lost * np.float32(1.001) + _ROUNDING
    with np.errstate(invalid="ignore"):  # rows that overflow
        share = rows.lost * over * (np.float32(1.001) * (1 + doubt.max()))
    return np.where(np.isfinite(error), error + share + _ROUNDING, error), doubt

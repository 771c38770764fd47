"""The numbers that every bound is made of, for aligned vectors and for all pairs.

Each function works on blocks of one namespace and returns :class:`Terms`; it knows no metric:

* :func:`aligned`, :func:`aligned_compiled`: vectors row by row, both sorted.
* :func:`all_pairs`: every row of one block with every row of another, as matrix products.
* :func:`aligned_exactly`: for the rare pairs whose bound nearly cancels to 0.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, cast
from recos._blocks import spans

# Rows sorted at a time: their sorted copies stay in the cache, in memory that is used again.
_FEW = 64


class Terms(NamedTuple):
    """Products of u/a and v/b, where the powers of two a and b keep the numbers in range.

    ``up`` is u↑ · v↑ and ``down`` is u↑ · v↓, None where the metric needs no sorting.
    """

    dot: Array
    up: Array
    down: Array
    norm_u: Array
    norm_v: Array
    scale_u: Array
    scale_v: Array


class Rows(NamedTuple):
    """A block of rows, scaled, with the parts of their sorted selves that :func:`all_pairs` needs.

    ``even`` and ``odd`` are None where the metric needs no sorting.
    """

    x: Array
    even: Array
    odd: Array
    norm: Array
    scale: Array

    def part(self, part: slice) -> Rows:
        """Return some of the rows."""
        return Rows(*(None if field is None else field[part] for field in self))


def aligned(xp: Any, u: Array, v: Array, *, sorts: bool) -> Terms:
    """Return the terms of vectors ``u`` and ``v``, whose leading axes broadcast.

    NumPy adds up in float64; other libraries in the dtype of the vectors.
    """
    wide = np.dtype(np.float64) if xp is np else u.dtype
    u, scale_u = scaled(xp, u, wide)
    v, scale_v = scaled(xp, v, wide)
    up = down = None
    if sorts:
        sorted_u = cast(xp, xp.sort(u, axis=-1), wide)
        sorted_v = cast(xp, xp.sort(v, axis=-1), wide)
        up = _vecdot(xp, sorted_u, sorted_v)
        down = _vecdot(xp, sorted_u, xp.flip(sorted_v, axis=-1))
    u, v = cast(xp, u, wide), cast(xp, v, wide)
    return Terms(_vecdot(xp, u, v), up, down, norms(xp, u), norms(xp, v), scale_u, scale_v)


def aligned_compiled(u: np.ndarray, v: np.ndarray, *, sorts: bool) -> Terms:
    """Return :func:`aligned` for NumPy rows; the terms of a row do not depend on the others."""
    from recos._kernels import sums  # noqa: PLC0415 - loads Numba

    u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
    count = max(len(u), len(v)) if len(u) and len(v) else 0
    chain, bounds = np.empty((3, count)), np.empty((count, 2))
    scale_u, scale_v = np.ones(len(u)), np.ones(len(v))
    sums.products(u, v, chain)
    fit = (_sums_fit(chain[1, : len(u)], u, 600), _sums_fit(chain[2, : len(v)], v, 600))
    if not all(fit):
        (u, scale_u), (v, scale_v) = scaled(np, u, u.dtype), scaled(np, v, v.dtype)
        sums.products(u, v, chain)
    if sorts:
        _sorted_products(u, v, bounds)
    up, down = bounds.T if sorts else (None, None)
    return Terms(chain[0], up, down, np.sqrt(chain[1]), np.sqrt(chain[2]), scale_u, scale_v)


def _sorted_products(u: np.ndarray, v: np.ndarray, bounds: np.ndarray) -> None:
    """Sort rows and write both bounds: all in one kernel, or a few rows at a time."""
    from recos._kernels import sorting, sums  # noqa: PLC0415 - loads Numba

    if sorting.for_lanes(u):
        sorting.sorted_products(u, v, bounds)
        return
    room_u, room_v = (np.empty((min(len(x), _FEW), x.shape[1]), x.dtype) for x in (u, v))
    for part in spans(len(bounds), _FEW):
        some_u, some_v = (x[part] if len(x) > 1 else x for x in (u, v))
        sums.sorted_products(
            _sorted_into(room_u, some_u), _sorted_into(room_v, some_v), bounds[part]
        )


def _sorted_into(room: np.ndarray, x: np.ndarray) -> np.ndarray:
    from recos._kernels import sorting  # noqa: PLC0415 - loads Numba

    ascending = room[: len(x)]
    sorting.sort_rows(x, ascending)
    return ascending


def _sums_fit(squares: np.ndarray, x: np.ndarray, exponent: int) -> bool:
    """Whether sums of squares are within 2**±exponent, or 0 because their rows are."""
    small, large, zero = 2.0**-exponent, 2.0**exponent, squares == 0
    return bool(np.all(zero | ((squares > small) & (squares < large))) and not x[zero].any())


def rows(
    xp: Any, x: Array, *, sorts: bool, right: bool = False, room: np.ndarray | None = None
) -> Rows:
    """Prepare a block of rows to stand on the left or the right of :func:`all_pairs`.

    NumPy rows are folded into ``room``, of their own shape, where it is given.
    """
    x, scale, norm = _scaled_compiled(x) if xp is np else (*scaled(xp, x, x.dtype), None)
    even = odd = None
    if sorts:
        even, odd = sort_and_fold(x, room) if xp is np else fold(xp, xp.sort(x, axis=-1))
        if right and x.shape[-1] % 2:  # the middle is its own mirror image: it counts twice
            even = xp.concat([even[:, :-1], 2 * even[:, -1:]], axis=-1)
    return Rows(x, even, odd, norms(xp, x) if norm is None else norm, scale)


def _scaled_compiled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return NumPy rows, their scales and their norms; most rows need no scaling."""
    from recos._kernels import sums  # noqa: PLC0415 - loads Numba

    squares = np.empty(len(x))
    sums.squares(x, squares)
    exponent = np.finfo(x.dtype).maxexp // 2
    if _sums_fit(squares, x, exponent):
        return x, np.ones(len(x), x.dtype), np.sqrt(squares).astype(x.dtype)
    x, scale = scaled(np, x, x.dtype)
    return x, scale, norms(np, x)


def fold(xp: Any, ascending: Array) -> tuple[Array, Array]:
    """Split sorted rows into their sum and difference with themselves reversed, each half as wide.

    Then 2 u↑·v↑ = e·e' + o·o' and 2 u↑·v↓ = e·e' - o·o', so that both bounds together cost one
    product of the full width. The middle of an odd width is the last of the sums.
    """
    width = ascending.shape[-1]
    half = width // 2
    low, high = ascending[..., :half], xp.flip(ascending[..., width - half :], axis=-1)
    return xp.concat([high + low, ascending[..., half : width - half]], axis=-1), high - low


def sort_and_fold(x: np.ndarray, room: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Sort and fold NumPy rows a few at a time: sorted copies never leave the cache."""
    from recos._kernels import sums  # noqa: PLC0415 - loads Numba

    folded = np.empty_like(x) if room is None else room
    room = np.empty((min(len(x), _FEW), x.shape[1]), x.dtype)
    for part in spans(len(x), _FEW):
        sums.fold(_sorted_into(room, x[part]), folded[part])
    middle = x.shape[1] - x.shape[1] // 2
    return folded[:, :middle], folded[:, middle:]


def all_pairs(xp: Any, u: Rows, v: Rows) -> Terms:
    """Return the terms of every row of ``u`` with every row of ``v``."""
    dot = u.x @ v.x.T
    up = down = None
    if u.even is not None:
        even, odd = u.even @ v.even.T, u.odd @ v.odd.T
        up, down = (even + odd) / 2, (even - odd) / 2
    return Terms(
        dot, up, down, u.norm[:, None], v.norm[None, :], u.scale[:, None], v.scale[None, :]
    )


class Doubt(NamedTuple):
    """When rounding spoils a quotient: its bound is less than ``least`` of ‖u‖ ‖v‖.

    The error of a quotient is about the rounding of its terms over the share of ‖u‖ ‖v‖ that the
    bound makes up. A dot product of less than ``near`` may have either sign: both bounds count.
    """

    least: float
    near: float

    @classmethod
    def of(cls, result: Any, summed: Any) -> Doubt:
        """Return the limits for similarities of one dtype whose terms were summed in another."""
        rounding = float(np.finfo(summed).eps)
        tolerance = 5e-14 if np.finfo(result).bits == 64 else 1e-6
        return cls(2 * rounding / tolerance, 16 * rounding)

    def pairs(self, xp: Any, terms: Terms) -> Array:
        """Return which pairs are doubtful."""
        size = terms.norm_u * terms.norm_v
        negative, tiny = terms.dot < 0, self.least * size
        chosen = xp.where(negative, terms.down, terms.up)
        other = xp.where(negative, terms.up, terms.down)
        open_sign = xp.abs(terms.dot) < self.near * size
        return (xp.abs(chosen) < tiny) | (open_sign & (xp.abs(other) < tiny))


def aligned_exactly(u: np.ndarray, v: np.ndarray) -> Terms:
    """Return the terms of NumPy rows, each rounded once."""
    u, scale_u = scaled(np, u.astype(np.float64), np.float64)
    v, scale_v = scaled(np, v.astype(np.float64), np.float64)
    sorted_u, sorted_v = np.sort(u, axis=-1), np.sort(v, axis=-1)
    up, down = _exact_dot(sorted_u, sorted_v), _exact_dot(sorted_u, sorted_v[:, ::-1])
    return Terms(_exact_dot(u, v), up, down, norms(np, u), norms(np, v), scale_u, scale_v)


def _exact_dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return row-wise dot products, rounded once: exact products and exact sums."""
    parts = np.concatenate(np.broadcast_arrays(*_two_product(u, v)), axis=-1)
    return np.array([math.fsum(row) for row in parts.tolist()])


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a*b rounded and the rounding error, exactly (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shifted = x * (2**27 + 1)
    high = shifted - (shifted - x)
    return high, x - high


def _vecdot(xp: Any, u: Array, v: Array) -> Array:
    # Array API vecdot has no batching rule in PyTorch's vmap.
    return np.vecdot(u, v) if xp is np else xp.sum(u * v, axis=-1)


def quiet(xp: Any, **kinds: Any) -> AbstractContextManager[Any]:
    """Keep NumPy from warning; PyTorch does not warn, and cannot trace its settings."""
    return nullcontext() if xp.__name__.endswith("torch") else np.errstate(**kinds)


def norms(xp: Any, x: Array) -> Array:
    """Return the norm of each row; the gradient at a zero row is 0."""
    square = _vecdot(xp, x, x)
    if xp is np:
        return np.sqrt(square)
    return xp.sqrt(xp.where(square == 0, 1.0, square)) * xp.astype(square != 0, square.dtype)


def scaled(xp: Any, x: Array, wide: Any) -> tuple[Array, Array]:
    """Divide each row by a power of two, so that sums of products fit into the dtype ``wide``.

    Dividing by a power of two changes no digit. NumPy rows that need no scaling are left alone.
    The scale of a row with NaN or infinity is not finite.
    """
    peak = xp.maximum(xp.max(x, axis=-1), -xp.min(x, axis=-1))
    if xp is np and _products_fit(peak, wide):
        return x, np.ones_like(peak)
    with quiet(xp, invalid="ignore"):
        exponent = xp.floor(xp.log2(xp.where(peak == 0, xp.ones_like(peak), peak)))
        # The logarithm of the largest number rounds up; reciprocals of the smallest overflow.
        largest = float(xp.finfo(x.dtype).max)
        limit = round(math.log2(largest)) - 1
        exponent = xp.where(peak <= largest, xp.clip(exponent, 1 - limit, limit), exponent)
        scale = xp.pow(xp.full_like(exponent, 2.0), exponent)
        return x / scale[..., None], scale


def _products_fit(peak: np.ndarray, wide: np.dtype) -> bool:
    limit = np.float64(2.0) ** (np.finfo(wide).maxexp // 4)
    return bool(np.all((peak == 0) | ((peak > 1 / limit) & (peak < limit))))

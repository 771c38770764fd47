"""Do two vectors order their components alike? Definitions 1 and 2 of the paper.

A pair of positions (i, j) is concordant where ``(u_i - u_j)(v_i - v_j)`` is positive, discordant
where it is negative, and tied where it is 0. recos is 1 only where no pair is discordant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, Inputs, cast, check_finite, read


class Concordance(NamedTuple):
    """Shares of the d(d-1)/2 pairs of positions; they add up to 1."""

    concordant: Array
    discordant: Array
    tied: Array


def similar(u: Any, v: Any, /, *, axis: int = -1) -> Array:
    """Tell whether no pair of positions is discordant: v orders its components as u does.

    ``(u_i - u_j)(v_i - v_j) >= 0`` for all i, j.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    array of bool, shape (...)
        Whether the vectors are similarly ordered.

    Examples
    --------
    >>> import recos
    >>> bool(recos.similar([1, 5.5, 2, 4], [2, 6, 3, 5]))
    True
    """
    given, u, v = _read_ordered(u, v, axis)
    v = _in_order_of(given.xp, u, v)
    return given.give_back_bool(given.xp.all(v[..., 1:] >= v[..., :-1], axis=-1))


def discordant(u: Any, v: Any, /, *, axis: int = -1) -> Array:
    """Tell whether no pair of positions is concordant: v orders its components against u.

    ``(u_i - u_j)(v_i - v_j) <= 0`` for all i, j.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    array of bool, shape (...)
        Whether the vectors are oppositely ordered.

    Examples
    --------
    >>> import recos
    >>> bool(recos.discordant([1, 5.5, 2, 4], [9, 4.5, 8, 6]))
    True
    """
    given, u, v = _read_ordered(u, v, axis)
    v = _in_order_of(given.xp, u, -v)
    return given.give_back_bool(given.xp.all(v[..., 1:] >= v[..., :-1], axis=-1))


def concordance(u: Any, v: Any, /, *, axis: int = -1) -> Concordance:
    """Return the shares of concordant, discordant and tied pairs of positions.

    Counted by merge sort, in O(d log d) with a stable sort that takes linear time on sorted runs.

    Parameters
    ----------
    u, v : array, shape (..., d)
        Vectors along ``axis``, d >= 2. The other axes broadcast.
    axis : int
        The axis that holds the components, in each of the two arrays.

    Returns
    -------
    Concordance
        Named tuple (concordant, discordant, tied) of arrays of shape (...). Kendall's tau-a is
        ``concordant - discordant``.

    Examples
    --------
    >>> import recos
    >>> [round(float(share), 4) for share in recos.concordance([1, 2, 3, 4], [1, 3, 2, 3])]
    [0.6667, 0.1667, 0.1667]
    """
    given, u, v = _read_ordered(u, v, axis)
    xp, width = given.xp, u.shape[-1]
    if width < 2:
        raise ValueError(f"u and v: expected at least 2 components to compare, got {width}")
    pairs = width * (width - 1) // 2
    if pairs > 2**31 and str(xp.argsort(u, axis=-1).dtype).endswith("int32"):
        raise ValueError(
            f"u and v: expected at most 65536 components where integers have 32 bits, got {width}; "
            'call jax.config.update("jax_enable_x64", True)'
        )
    device = None if xp is np else given.home.device
    against = _inversions(xp, _in_order_of(xp, u, v), device)
    # With v reversed, exactly the concordant pairs become inversions.
    along = _inversions(xp, _in_order_of(xp, u, -v), device)
    counts = (along, against, pairs - along - against)
    return Concordance(*(given.give_back(cast(xp, count, given.dtype) / pairs) for count in counts))


def _read_ordered(u: Any, v: Any, axis: int) -> tuple[Inputs, Array, Array]:
    given = read(u, v, names=("u", "v"), axis=axis)
    xp = given.xp
    arrays = [cast(xp, x, given.dtype) for x in given.arrays]
    for x, name in zip(arrays, given.names, strict=True):
        check_finite(xp, xp.max(xp.abs(x), axis=-1), name)
    return given, *xp.broadcast_arrays(*arrays)


def _in_order_of(xp: Any, u: Array, v: Array) -> Array:
    """Return v in the order that sorts u, and ascending where u ties."""
    order = xp.argsort(v, axis=-1)
    u, v = xp.take_along_axis(u, order, axis=-1), xp.take_along_axis(v, order, axis=-1)
    return xp.take_along_axis(v, xp.argsort(u, axis=-1, stable=True), axis=-1)


def _inversions(xp: Any, v: Array, device: Any) -> Array:
    """Count the pairs i < j with v_i > v_j by merging sorted runs of doubling length.

    Merging moves each element of the left run to the right by as many places as there are smaller
    elements in the right run: the sum of those moves is the number of inversions between the two.
    """
    width = v.shape[-1]
    padded = 1 << (width - 1).bit_length()
    filler = xp.max(v, axis=-1, keepdims=True)  # at the end, so in order with everything
    filler = xp.broadcast_to(filler, (*v.shape[:-1], padded - width))
    v = xp.concat([v, filler], axis=-1)
    place = xp.arange(padded, device=device)
    count, run = 0, 1
    while run < padded:
        v = xp.reshape(v, (*v.shape[:-1], padded // (2 * run), 2 * run))
        order = xp.argsort(v, axis=-1, stable=True)
        moved = xp.where(order < run, place[: 2 * run], xp.zeros_like(order))
        count = count + xp.sum(moved, axis=(-1, -2)) - padded // (2 * run) * (run * (run - 1) // 2)
        v = xp.reshape(xp.take_along_axis(v, order, axis=-1), (*v.shape[:-2], padded))
        run *= 2
    return count

"""Compiled kernels for NumPy blocks: they release the GIL and add up in float64.

* ``sums``: dot products and squares of aligned rows.
* ``sorting``: rows sorted in vector registers, and what is made of them.
* ``distance``: recos as usearch calls it.
* ``tiles``: products of tiles divided by their bounds.

The array-namespace code in ``_terms`` says the same in a few lines for every library and is what
these are tested against. Importing this package loads Numba, so it is imported on first use.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types

REALS = (types.float32, types.float64)


def matrix(real: Any, *, readonly: bool = True) -> Any:
    return types.Array(real, 2, "C", readonly=readonly)


def vector(real: Any) -> Any:
    return types.Array(real, 1, "C", readonly=True)


def compiled(signatures: list[object] | None = None, *, reorder: bool = False):  # type: ignore[no-untyped-def]
    # Reordering lets sums use vector registers, but takes products out of range elsewhere. Nothing
    # may assume that NaN does not occur.
    fast = {"reassoc", "contract"} if reorder else {"contract"}
    return njit(signatures, nogil=True, cache=True, fastmath=fast)

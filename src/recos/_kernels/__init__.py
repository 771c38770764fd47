"""Compiled kernels for NumPy blocks: they release the GIL and add up in float64.

* ``sums``: dot products and squares of aligned rows.
* ``networks``: how rows are sorted in vector registers.
* ``sorting``: rows sorted so, their products with a basis and with each other.
* ``distance``: recos as usearch calls it.
* ``ranks``: rank correlations of weighted observations.
* ``tiles``: products of tiles divided by their bounds.
* ``select``, ``codes``: limits of tiles of scores, and int8 codes of rows.

For PyTorch tensors on CUDA devices:

* ``warps``: CUDA C++ (``cuda/``), where a warp holds a row. Sorting in registers needs numbers that
  are named one by one and pass between lanes, which Triton does not offer.
* ``triton``: products on tensor cores that are reduced before they reach memory.

Which of them runs is decided where they are called::

    paired, rerank, final scores   _exact    float32, float16, bfloat16, width <= 2048: warps.score
                                             else sort and sums of PyTorch, in float64
    pairwise                       _tiles    float32, no gradient, not traced: triton.ratios
                                             else products of the array namespace
    topk, range_search, Index      _device   recos and cos of those dtypes: triton.maxima, then
                                             warps.sift, warps.rank; each has its plain version
                                             else all pairs in float64, in blocks

The array-namespace code in ``_terms`` says the same in a few lines for every library and is what
these are tested against. Importing this package loads Numba, so it is imported on first use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import njit, types


def matrix(real: Any, *, readonly: bool = True) -> Any:
    return types.Array(real, 2, "C", readonly=readonly)


def vector(real: Any) -> Any:
    return types.Array(real, 1, "C", readonly=True)


def compiled(signatures: list[object] | None = None, *, reorder: bool = False):  # type: ignore[no-untyped-def]
    # Reordering lets sums use vector registers, but takes products out of range elsewhere. Nothing
    # may assume that NaN does not occur.
    fast = {"reassoc", "contract"} if reorder else {"contract"}
    return njit(signatures, nogil=True, cache=True, fastmath=fast)


def part_of_others() -> Any:
    # Compiled where it is called, and not by itself: that would take as long once more.
    return njit(nogil=True, inline="always")


class for_reals:
    """Compile a function for the dtype of its first argument, when first called with that dtype.

    A signature for each real type is made by ``signature``. So a search of float32 rows does not
    wait for what float64 rows would need.
    """

    def __init__(self, signature: Callable[[Any], object], *, reorder: bool = False) -> None:
        self.signature, self.reorder, self.lock = signature, reorder, threading.Lock()
        self.found: dict[str, Any] = {}

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that compiles itself."""

        @wraps(function)
        def call(first: Any, *rest: Any) -> Any:
            dtype = first.dtype.char
            if dtype not in self.found:
                with self.lock:
                    if dtype not in self.found:  # another thread may have compiled it meanwhile
                        real = {"f": types.float32, "d": types.float64}[dtype]
                        compile_it = compiled([self.signature(real)], reorder=self.reorder)
                        self.found[dtype] = compile_it(function)
            return self.found[dtype](first, *rest)

        call.py_func = function  # type: ignore[attr-defined]
        return call

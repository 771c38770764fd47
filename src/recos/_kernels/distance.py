"""The distance of two rows, as usearch calls it: recos of rows that bring their sorted selves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, cfunc, types  # type: ignore[attr-defined]


def one_less_recos(width: int) -> Any:
    """Return a C function of two float32 rows ``[v | sort(v)]`` that returns 1 - recos."""
    pointer = types.CPointer(types.float32)  # type: ignore[no-untyped-call]
    size, last = np.uintp(width), np.uintp(2 * width - 1)

    def distance(a, b):  # type: ignore[no-untyped-def]
        u, v = carray(a, 2 * width), carray(b, 2 * width)
        dot = bound = np.float32(0)
        for i in range(size):
            dot += u[i] * v[i]
        if dot > 0:
            for i in range(size):
                bound += u[size + i] * v[size + i]
        elif dot < 0:
            for i in range(size):
                bound += u[size + i] * v[last - i]
        if bound == 0:
            return np.float32(1)
        return np.float32(1) - min(max(dot / abs(bound), np.float32(-1)), np.float32(1))

    compiled = cfunc(types.float32(pointer, pointer), fastmath={"reassoc", "contract"})
    return compiled(distance)

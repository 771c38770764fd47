"""Rank correlations of weighted observations."""

from __future__ import annotations

import numpy as np
from numba import types

from recos._kernels import compiled, matrix, vector

_SIGNATURE = types.void(
    matrix(types.int64),
    vector(types.int64),
    vector(types.float64),
    types.Array(types.float64, 1, "C"),
)


@compiled([_SIGNATURE])
def rank_correlations(groups, sizes, weights, out):  # type: ignore[no-untyped-def]
    """Write Spearman's correlation of each row of ``groups`` with the last.

    ``groups[k, i]`` is the place of observation i among the ``sizes[k]`` different values of
    variable k. An observation of weight w counts as w equal ones.
    """
    last, n = groups.shape[0] - 1, groups.shape[1]
    target, rank = np.empty(n), np.empty(n)
    half, own = weights.sum() / 2, 0.0
    for k in range(last, -1, -1):
        group = groups[k]
        rank[: sizes[k]] = 0.0
        for i in range(n):
            rank[group[i]] += weights[i]
        below = -half  # ranks less their mean
        for j in range(sizes[k]):
            total = rank[j]
            rank[j] = below + total / 2
            below += total
        if k == last:
            for i in range(n):
                r = rank[group[i]]
                target[i] = weights[i] * r
                own += target[i] * r
            continue
        square = product = 0.0
        for i in range(n):
            r = rank[group[i]]
            square += weights[i] * r * r
            product += target[i] * r
        out[k] = product / np.sqrt(square * own) if square * own > 0 else np.nan

"""Queries that are compared with all rows in float64: what limits cannot help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recos._blocks import spans
from recos._device.records import TILE, DeviceCorpus, FoundOnDevice
from recos._exact import pair_scores
from recos._terms import Doubt, all_pairs, rows
from recos.metrics import Metric, divide

CLOSE = 1e-9  # how far off scores of products in float64 are, at most, where they are not doubtful
_COMPARED = 2**24  # numbers of rows, and pairs, that are compared at a time


def compare_all(
    metric: Metric, queries: Any, corpus: DeviceCorpus, k: int, own: Any, allowed: Any
) -> FoundOnDevice:
    """Return the k best of all rows, all compared in float64."""
    import torch  # noqa: PLC0415 - heavy

    scores = torch.empty((len(queries), 0), dtype=torch.float64, device=queries.device)
    indices = torch.empty((len(queries), 0), dtype=torch.int64, device=queries.device)
    for part, some, doubtful in all_scores(metric, queries, corpus.rows):
        number = torch.arange(part.start, part.stop, device=queries.device)
        out = own[:, None] == number
        out = out if allowed is None else out | ~allowed[part]
        scores = torch.cat([scores, torch.where(out, -torch.inf, some)], dim=1)
        indices = torch.cat([indices, number.expand(len(queries), -1)], dim=1)
        # Products of the same rows may differ by their places; scores must not.
        least = scores.topk(min(k, scores.shape[1]), dim=1)[0][:, -1:] - CLOSE
        near = ((scores[:, -len(number) :] >= least) | doubtful) & ~out
        i, j = near.nonzero(as_tuple=True)
        scores[i, scores.shape[1] - len(number) + j] = pair_scores(
            metric, queries, corpus.rows, i, j + part.start
        )
        order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
        scores, indices = scores.gather(1, order), indices.gather(1, order)
    indices = torch.where(scores > -torch.inf, indices, -1)
    return FoundOnDevice(scores, indices, torch.full_like(indices[:, 0], len(corpus.rows)))


def all_scores(metric: Metric, u: Any, v: Any) -> Iterator[tuple[slice, Any, Any]]:
    """Yield parts of the rows of v, their float64 scores with u, and which are doubtful."""
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    left = rows(xp, u.double(), sorts=metric.sorts)
    for part in spans(len(v), max(TILE, _COMPARED // max(len(u), v.shape[1]))):
        terms = all_pairs(xp, left, rows(xp, v[part].double(), sorts=metric.sorts, right=True))
        scores = divide(xp, metric, terms)
        doubt = Doubt.of(np.float64, np.float64)
        yield (
            part,
            scores,
            doubt.pairs(xp, terms) if metric.sorts else scores.isnan(),
        )


def in_parts(which: Any, most: int = 64) -> list[Any]:
    """Return the parts of some numbers, each at most so long."""
    return [which[part] for part in spans(len(which), max(1, most))]

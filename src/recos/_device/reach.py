"""The rows of a corpus that reach a threshold."""

from __future__ import annotations

from typing import Any

from recos._blocks import spans
from recos._device import steps
from recos._device.compare import CLOSE, all_scores, in_parts
from recos._device.corpus import LEAST_SHARE, searchable
from recos._device.queries import encoded, prepare
from recos._device.records import FLOOR, KNOWN, DeviceCorpus
from recos._exact import pair_scores
from recos.metrics import Metric


def reaching(
    metric: Metric, queries: Any, corpus: DeviceCorpus, threshold: float, *, memory: int
) -> tuple[Any, Any, Any]:
    """Return the pairs of queries and rows whose float64 score is the threshold or more.

    Returns
    -------
    tuple of arrays, shape (n,)
        Queries, rows and scores, in no order.
    """
    import torch  # noqa: PLC0415 - heavy

    found = [(torch.empty(0, dtype=torch.int64, device=queries.device),) * 2]
    step = max(1, memory // (5 * max(1, len(corpus.tiles))))
    for part in spans(len(queries), step // 128 * 128 or step):
        some, left = queries[part], torch.arange(len(queries[part]), device=queries.device)
        if threshold > 0 and searchable(metric, corpus.rows):
            pairs, left = _reaching(metric, some, corpus, threshold, memory)
            found += [(i + part.start, j) for i, j in pairs]
        for few in in_parts(left):
            for columns, scores, doubtful in all_scores(metric, some[few], corpus.rows):
                i, j = ((scores >= threshold - CLOSE) | doubtful).nonzero(as_tuple=True)
                found.append((few[i] + part.start, j + columns.start))
    i, j = (torch.cat(fields) for fields in zip(*found, strict=True))
    scores = pair_scores(metric, queries, corpus.rows, i, j)
    kept = scores >= threshold
    return i[kept], j[kept], scores[kept]


def _reaching(
    metric: Metric, queries: Any, corpus: DeviceCorpus, threshold: float, memory: int
) -> tuple[list[tuple[Any, Any]], Any]:
    """Return pairs that may reach a threshold, and queries of which nothing is known."""
    import torch  # noqa: PLC0415 - heavy

    codes, unit, scale, epsilon = encoded(queries, corpus)
    maxima = steps.maxima(codes, scale, corpus, None)
    own = torch.full((len(queries),), -1, dtype=torch.int64, device=queries.device)
    mine = prepare(metric, queries, corpus, own, codes, unit, scale, epsilon)
    mine.numbers[FLOOR], mine.numbers[KNOWN] = threshold * (1 - 1e-6), torch.inf
    certain = mine.table[:, 0] > LEAST_SHARE
    which, found = certain.nonzero()[:, 0], []
    counts = torch.full((len(queries),), steps.ROOM, dtype=torch.int32, device=queries.device)
    while len(which):
        which = which[counts[which].argsort()]
        full = []
        for part in in_parts(which, memory // (12 * int(counts[which].max()))):
            some, room = mine.some(part), int(counts[part].max())
            rows, lower, more = steps.room_for(len(part), room, queries.device)
            steps.sift(some, maxima[:, part].contiguous(), corpus, rows, lower, more, 1)
            fits = more <= room
            there = torch.arange(room, device=more.device) < (more * fits)[:, None]
            i, place = there.nonzero(as_tuple=True)
            found.append((part[i], rows[i, place, 0].long()))
            counts[part] = more
            full.append(part[~fits])
        which = torch.cat(full)
    return found, (~certain).nonzero()[:, 0]

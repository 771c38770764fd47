"""Rows of which nothing is known yet: described and searched a section at a time."""

from __future__ import annotations

from typing import Any

from recos._blocks import spans
from recos._device.corpus import check_finite_rows, make_corpus, searchable
from recos._device.reach import reaching
from recos._device.records import TILE, DeviceCorpus, FoundOnDevice
from recos._device.topk import search
from recos.metrics import Metric


def search_rows(
    metric: Metric,
    queries: Any,
    stored: Any,
    k: int,
    own: Any = None,
    allowed: Any = None,
    *,
    basis: Any = None,
    memory: int,
    name: str = "corpus",
) -> FoundOnDevice:
    """Return the k best rows for each query, of rows described a section at a time.

    They may lie in host memory: sections are brought to the device of the queries.
    """
    found: list[FoundOnDevice] = []
    for part in _sections(stored, memory):
        corpus = section(metric, stored[part].to(queries.device), basis, name, part.start)
        mine = None if own is None else own - part.start
        some = None if allowed is None else allowed[part]
        best = search(metric, queries, corpus, k, mine, some, memory=memory // 2)
        best.indices[best.indices >= 0] += part.start
        found = [_merge([*found, best], k)]
    return found[0]


def reaching_rows(
    metric: Metric, queries: Any, stored: Any, threshold: float, *, memory: int, name: str
) -> tuple[Any, Any, Any]:
    """Return the pairs that reach a threshold, of rows described a section at a time."""
    import torch  # noqa: PLC0415 - heavy

    none = torch.empty(0, dtype=torch.int64, device=queries.device)
    found = [(none, none, none.double())]
    for part in _sections(stored, memory):
        corpus = section(metric, stored[part], None, name, part.start)
        i, j, scores = reaching(metric, queries, corpus, threshold, memory=memory // 2)
        found.append((i, j + part.start, scores))
    i, j, scores = (torch.cat(fields) for fields in zip(*found, strict=True))
    return i, j, scores


def _merge(parts: list[FoundOnDevice], k: int) -> FoundOnDevice:
    """Return the best of what was found in parts of the rows, which are in order."""
    import torch  # noqa: PLC0415 - heavy

    if len(parts) == 1:
        return parts[0]
    scores, indices = (torch.cat([part[field] for part in parts], dim=1) for field in (0, 1))
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    scored = torch.stack([part.scored for part in parts]).sum(dim=0)
    return FoundOnDevice(scores.gather(1, order), indices.gather(1, order), scored)


def _sections(stored: Any, memory: int) -> list[slice]:
    room = stored.shape[1] * (4 if stored.is_cuda else 8) + 128
    return spans(len(stored), max(TILE, memory // 2 // room // TILE * TILE))


def section(metric: Metric, rows: Any, basis: Any, name: str, first: int) -> DeviceCorpus:
    if searchable(metric, rows):
        return make_corpus(metric, rows.contiguous(), basis, name=name, first=first)
    check_finite_rows(rows, name, first)
    return DeviceCorpus(rows.contiguous(), *(rows[:0],) * 7)

"""The k best rows of a corpus: screened where limits rule rows out, else all compared."""

from __future__ import annotations

from typing import Any

from recos._blocks import spans
from recos._device.compare import compare_all, in_parts
from recos._device.corpus import check_finite_rows, searchable
from recos._device.records import DeviceCorpus, FoundOnDevice
from recos._device.screen import screen
from recos.metrics import Metric


def search(
    metric: Metric,
    queries: Any,
    corpus: DeviceCorpus,
    k: int,
    own: Any = None,
    allowed: Any = None,
    *,
    memory: int,
) -> FoundOnDevice:
    """Return the k best rows for each query, which must be finite; missing ones are -1.

    Row ``own[i]`` is not to be found for query i, nor rows that are not ``allowed``.
    """
    import torch  # noqa: PLC0415 - heavy

    if own is None:
        own = torch.full((len(queries),), -1, dtype=torch.int64, device=queries.device)
    if allowed is not None:
        corpus = corpus._replace(
            over=torch.where(allowed, corpus.over, 0),
            info=torch.cat([corpus.info[:, :1] * allowed[:, None], corpus.info[:, 1:]], dim=1),
        )
    step = max(1, memory // (5 * max(1, len(corpus.tiles))))
    step = step // 128 * 128 or step
    parts = [
        _best(metric, queries[part], corpus, k, own[part], allowed, memory)
        for part in spans(len(queries), step)
    ]
    return FoundOnDevice(*(torch.cat(fields) for fields in zip(*parts, strict=True)))


def _best(
    metric: Metric, queries: Any, corpus: DeviceCorpus, k: int, own: Any, allowed: Any, memory: int
) -> FoundOnDevice:
    import torch  # noqa: PLC0415 - heavy

    found = FoundOnDevice(
        torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=queries.device),
        torch.full((len(queries), k), -1, dtype=torch.int64, device=queries.device),
        torch.zeros(len(queries), dtype=torch.int32, device=queries.device),
    )
    left = torch.arange(len(queries), device=queries.device)
    if len(corpus.tiles) > 2 * k and searchable(metric, corpus.rows):
        left = screen(metric, queries, corpus, k, own, allowed, found, memory)
    if len(left):
        check_finite_rows(queries, "queries")
    for part in in_parts(left):
        best = compare_all(metric, queries[part], corpus, k, own[part], allowed)
        for field, values in zip(found, best, strict=True):
            field[part] = values.to(field.dtype)
    return found

"""The best rows of queries whose limits rule most rows out."""

from __future__ import annotations

from typing import Any

from recos._device import steps
from recos._device.compare import in_parts
from recos._device.corpus import LEAST_SHARE
from recos._device.queries import encoded, prepare
from recos._device.records import (
    EPSILON,
    FLOOR,
    KNOWN,
    MOST,
    REST,
    SHARE,
    DeviceCorpus,
    FoundOnDevice,
    Queries,
)
from recos.metrics import Metric


def screen(
    metric: Metric, queries: Any, corpus: DeviceCorpus, k: int, own: Any, allowed: Any,
    found: FoundOnDevice, memory: int,
) -> Any:  # fmt: skip
    """Write what is found; return which queries can only be compared with all rows.

    The host waits for the device once, when everything is under way.
    """
    import torch  # noqa: PLC0415 - heavy

    codes, unit, scale, epsilon = encoded(queries, corpus)
    maxima = steps.maxima(codes, scale, corpus, None if allowed is None else allowed.float())
    mine = prepare(metric, queries, corpus, own, codes, unit, scale, epsilon)
    _set_floors(mine.numbers, maxima, corpus.tiles, k + 1)
    floor = mine.numbers[FLOOR]
    certain = (floor > 0) & (mine.table[:, 0] > LEAST_SHARE)
    floor.copy_(torch.where(certain, floor, torch.inf))
    room = max(steps.ROOM, 4 * k)
    candidates, counts = _candidates(mine, maxima, corpus, k, room)
    flags = torch.where(certain, 0, 4).int()
    steps.rank(metric, mine, corpus, candidates, counts, found, flags)
    flags = flags.cpu()
    if not flags.any():
        return flags[:0]
    again = ((flags > 0) & (flags < 4)).nonzero()[:, 0].to(maxima.device)
    if len(again):
        again = again[counts[again].argsort()]
        for part in in_parts(again, memory // (32 * int(counts[again].max()))):
            some = mine.some(part)
            wide = max(k, int(counts[part].max()))
            candidates, more = _candidates(some, maxima[:, part].contiguous(), corpus, k, wide)
            best = steps.scored(metric, some, corpus, k, candidates, more)
            for field, values in zip(found, best, strict=True):
                field[part] = values.to(field.dtype)
    return (flags >= 4).nonzero()[:, 0].to(maxima.device)


def _set_floors(numbers: Any, maxima: Any, tiles: Any, k: int) -> None:
    """Set what the k-th best score is at least, and a maximum that about k tiles reach.

    The best rows of k groups of tiles are k rows, and the lower limits of their scores are known.
    """
    group = max(1, min(16, len(maxima) // (4 * k)))
    count = len(maxima) // group
    most = maxima[: count * group].reshape(count, group, -1).amax(dim=1)
    limits = tiles[: count * group].reshape(count, group, -1).amax(dim=1)[:, :, None]
    lost = numbers[EPSILON] * limits[:, 0] + numbers[MOST] * limits[:, 3]
    lower = (most - lost) / (numbers[SHARE] + numbers[REST] * limits[:, 2])
    best, which = lower.T.contiguous().topk(k, dim=1, sorted=False)
    numbers[FLOOR] = best.amin(dim=1) * (1 - 1e-6)
    numbers[KNOWN] = most.gather(0, which.T).amin(dim=0)


def _candidates(
    queries: Queries, maxima: Any, corpus: DeviceCorpus, k: int, room: int
) -> tuple[Any, Any]:
    """Return rows that may be among the k best with their upper limits, and how many there are.

    Floors are raised to the k-th best lower limit on the way. What does not fit is counted only.
    """
    import torch  # noqa: PLC0415 - heavy

    found, lower, counts = steps.room_for(len(queries.unit), room, maxima.device)
    for stage in (0, 1):
        steps.sift(queries, maxima, corpus, found, lower, counts, stage)
        floor = queries.numbers[FLOOR]
        floor.copy_(torch.maximum(floor, lower.topk(k, dim=1)[0][:, -1]))
    return found, counts

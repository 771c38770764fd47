"""The steps of a search, each by a kernel, and by plain PyTorch where the kernel cannot.

What is plain is the oracle of the kernel: it runs on a CPU as well.
"""

from __future__ import annotations

from typing import Any

from recos._blocks import spans
from recos._device.records import (
    EPSILON,
    FLOOR,
    KNOWN,
    MOST,
    REST,
    SHARE,
    TILE,
    DeviceCorpus,
    FoundOnDevice,
    Queries,
)
from recos._exact import has_triton, pair_scores
from recos.metrics import Metric

ROOM = 256  # candidates of a query, at least
_MOST_RANKED = 2048  # candidates of a query that a kernel scores


def sorted_products(x: Any, basis: Any) -> Any:
    """Return the squares of rows in float64, and products of sorted unit rows with vectors."""
    if x.is_cuda and _warps().fits(x):
        return _warps().describe(x, basis)
    wide = x.double()
    squares = (wide * wide).sum(dim=1)
    unit = wide / squares.sqrt().clamp(min=1e-300)[:, None]
    return squares, (unit.sort(dim=1)[0] @ basis.double().T).float()


def encode(x: Any, weight: Any, codes: Any, scale: Any, lost: Any) -> None:
    """Write folded rows as codes, the scale of each tile, and the length of what is lost."""
    import torch  # noqa: PLC0415 - heavy

    if x.is_cuda and _warps().fits(x):
        _warps().encode(x, weight, codes, scale, lost)
        return
    folded = torch.zeros(codes.shape, dtype=torch.float32, device=x.device)
    folded[: len(x), : x.shape[1]] = x.float() * weight[:, None]
    if codes.dtype == torch.int8:
        scale[:] = folded.abs().reshape(len(scale), -1).amax(dim=1) / 127
    unit = scale.clamp(min=1e-30).repeat_interleave(TILE)[:, None]
    whole = folded / unit
    codes[:] = (whole.round() if codes.dtype == torch.int8 else whole).to(codes.dtype)
    lost[:] = (folded - codes.float() * unit).norm(dim=1)[: len(x)] * 1.00001 + 1e-6


def maxima(codes: Any, scale: Any, corpus: DeviceCorpus, weight: Any) -> Any:
    """Return the largest product of each query with the folded rows of each tile, (tiles, n)."""
    import torch  # noqa: PLC0415 - heavy

    right = corpus.rows
    if corpus.codes is None:
        weight = corpus.info[:, 0].contiguous()
    else:
        right = corpus.codes
        if weight is not None:
            weight = torch.nn.functional.pad(weight, (0, len(right) - len(weight)))
    if right.is_cuda and has_triton():
        from recos._kernels import triton  # noqa: PLC0415 - optional

        return triton.maxima(codes, right, scale, corpus.scale, weight)
    parts = []
    for part in spans(len(right), TILE * max(1, 2**20 // (TILE * len(codes)))):
        some = right[part].float() @ codes.float().T
        some = some if weight is None else some * weight[part, None]
        missing = -len(some) % TILE
        some = torch.nn.functional.pad(some, (0, 0, 0, missing)) if missing else some
        parts.append(some.reshape(-1, TILE, len(codes)).amax(dim=1))
    return torch.cat(parts) * scale * corpus.scale[:, None]


def room_for(size: int, room: int, device: Any) -> tuple[Any, Any, Any]:
    """Return room for rows and the bits of their upper limits, for their lower ones, and counts."""
    import torch  # noqa: PLC0415 - heavy

    found = torch.full((size, room, 2), -1, dtype=torch.int32, device=device)
    lower = torch.full((size, room), -1.0, device=device)
    return found, lower, torch.zeros(size, dtype=torch.int32, device=device)


def sift(
    queries: Queries, maxima: Any, corpus: DeviceCorpus, found: Any, lower: Any, counts: Any,
    stage: int,
) -> None:  # fmt: skip
    """Append rows that may reach the floor, and their limits, to the candidates of each query.

    At first those of tiles whose maximum is known to be among the best, then those of others that
    may reach the floor. ``found`` holds the row and the bits of the upper limit.
    """
    import torch  # noqa: PLC0415 - heavy

    if maxima.is_cuda and _warps().fits(corpus.rows):
        _warps().sift(
            queries.unit, queries.numbers, queries.table, queries.codes, maxima, corpus.tiles,
            corpus.rows, corpus.info, corpus.over, corpus.features, corpus.codes, corpus.scale,
            queries.own, found, lower, counts, stage,
        )  # fmt: skip
        return
    numbers, tiles = queries.numbers, corpus.tiles[:, :, None]
    floor = numbers[FLOOR]
    alive = (maxima >= numbers[KNOWN]) & (floor <= 1)
    if stage:
        slack = numbers[EPSILON] * tiles[:, 0] + numbers[MOST] * tiles[:, 1]
        slack = slack + floor.clamp(max=1) * numbers[REST] * tiles[:, 2]
        alive = ~alive & ~(maxima + slack < floor * numbers[SHARE]) & (floor <= 1)
    tile, query = alive.nonzero(as_tuple=True)
    doubt = (corpus.rows.shape[1] / 32 + 16) * 1.2e-7
    for i in range(len(floor)):
        row = (tile[query == i][:, None] * TILE + torch.arange(TILE, device=tile.device)).flatten()
        row = row[row < len(corpus.rows)]
        row = row[(corpus.over[row] != 0) & (row != queries.own[i])]
        cosine = (corpus.rows[row].float() * corpus.over[row, None]) @ queries.unit[i]
        bound = corpus.features[row, :-1] @ queries.table[i, :-1]
        open_ = corpus.features[row, -1] * queries.table[i, -1]
        low, high = cosine - doubt, cosine + doubt
        upper = torch.where(bound - open_ > high, high / (bound - open_), 1.0) * 1.000001
        least = low / torch.maximum(low, (bound + open_).clamp(max=1)) * 0.999999
        kept = ~(high < 0) & ~(upper < floor[i])
        row, upper, least = row[kept], upper[kept], torch.where(low > 0, least, -1.0)[kept]
        start = int(counts[i])
        counts[i] += len(row)
        some = slice(start, min(start + len(row), found.shape[1]))
        size = max(0, some.stop - some.start)
        found[i, some, 0] = row[:size].int()
        found[i, some, 1] = upper[:size].view(torch.int32)
        lower[i, some] = least[:size]


def rank(
    metric: Metric, queries: Queries, corpus: DeviceCorpus, candidates: Any, counts: Any,
    found: FoundOnDevice, flags: Any,
) -> None:  # fmt: skip
    """Write the best of the candidates; flag queries that had too many, or a doubtful one."""
    k, room = found.scores.shape[1], candidates.shape[1]
    if corpus.rows.is_cuda and _warps().fits(corpus.rows, queries.rows) and room <= _MOST_RANKED:
        _warps().rank(
            queries.rows, corpus.rows, queries.numbers[FLOOR].contiguous(), candidates, counts,
            *found, flags, sorts=metric.sorts,
        )  # fmt: skip
        return
    best = scored(metric, queries, corpus, k, candidates, counts)
    for field, values in zip(found, best, strict=True):
        field[:] = values
    flags |= (counts > room).int()


def scored(
    metric: Metric, queries: Queries, corpus: DeviceCorpus, k: int, found: Any, counts: Any
) -> FoundOnDevice:
    """Return the k best candidates, scored in float64."""
    import torch  # noqa: PLC0415 - heavy

    row, upper = found[..., 0], found[..., 1].view(torch.float32)
    there = torch.arange(row.shape[1], device=row.device) < counts[:, None]
    kept = there & (upper >= queries.numbers[FLOOR][:, None])
    query, place = kept.nonzero(as_tuple=True)
    which = row[query, place].long()
    scores = torch.full(row.shape, -torch.inf, dtype=torch.float64, device=row.device)
    scores[query, place] = pair_scores(metric, queries.rows, corpus.rows, query, which)
    order = torch.where(kept, row, 2**31 - 1).argsort(dim=1)
    scores, row = scores.gather(1, order), row.gather(1, order)
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    scores, row = scores.gather(1, order), row.gather(1, order).long()
    return FoundOnDevice(scores, torch.where(scores > -torch.inf, row, -1), kept.sum(dim=1))


def _warps() -> Any:
    from recos._kernels import warps  # noqa: PLC0415 - loads Numba

    return warps

"""Exact search on a GPU: screened by the tensor cores, certified, scored in float64.

Every row is folded: its unit self over c, its sorted self's share of one profile. The product x of
a unit query with a folded row is the score times the query's own share, up to what the rest of both
profiles can add. So the largest product of a tile of 64 rows, plus what rounding can hide, limits
all its scores, and only these maxima are written: the matrix of products never exists.

1. ``maxima``: one product of codes (float16, bfloat16 or int8) per pair.
2. The k best tiles of a query have k different rows: the least of their lower limits is a floor.
3. ``sift`` looks at the rows of the best tiles with all coordinates, which raises the floor to
   nearly the k-th best score, then at those of the others that may reach it.
4. What is left is scored in float64 and ordered by score, then by index.

Queries whose best scores are not positive, or whose profile is unlike all others, are compared with
all rows in float64. Each step has a kernel (``_kernels/warps``, ``_kernels/triton``) and the same
in plain PyTorch, which serves where kernels cannot, and as their oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, Inputs, check_finite, on_host
from recos._blocks import spans
from recos._exact import has_triton, pair_scores
from recos._terms import Doubt, all_pairs, rows
from recos.metrics import Metric, divide

TILE = 64
RANK = 7  # coordinates of a profile: with what they leave out, 32 bytes
_SAMPLE = 128  # rows that a basis is fitted to
_ROUNDS = 3  # of the power iteration that fits it
_DESCRIBED = 2**20  # rows at a time
_LEAST_SHARE = 0.25  # of a profile that the first coordinate must hold
_ROOM = 256  # candidates of a query, at least
DTYPES = ("float32", "float16", "bfloat16")  # that rows are kept in
_KEPT = 0.9  # of the free memory of a device that rows may fill
_COMPARED = 2**24  # numbers of rows, and pairs, that are compared in float64 at a time
_MOST_RANKED = 2048  # candidates of a query that a kernel scores
_CLOSE = 1e-9  # how far off scores of products in float64 are, at most, where they are not doubtful
_INT8_LOSS = 0.03  # of a typical unit row, up to which codes of eight bits rule out enough


class DeviceCorpus(NamedTuple):
    """Rows in the memory of a device, and what is known of each.

    Attributes
    ----------
    rows : (m, d)
        As they are stored.
    over : (m,)
        1/‖v‖, 0 for rows of zeros and those that may not be found.
    features : (m, RANK + 1)
        Coordinates of the profile, and the length of what they leave out.
    info : (m, 4)
        What a row is multiplied with to fold it, the length of its folded self, what its codes lose
        of that, and what the first coordinate leaves of its profile over its share.
    tiles : (tiles, 4)
        The largest of the last three in each tile, and what codes lose at most where that is known.
    codes : (tiles * 64, padded width), optional
        Folded rows; without them rows are multiplied as they lie.
    scale : (tiles,)
        What the codes of a tile are to be multiplied with.
    basis : (RANK, d)
        Profiles; the first is the one that all rows share.
    """

    rows: Array
    over: Array
    features: Array
    info: Array
    tiles: Array
    codes: Array
    scale: Array
    basis: Array


class _Queries(NamedTuple):
    """Queries as they are, of length 1, as codes, and numbers of each (see ``_NUMBERS``)."""

    rows: Array
    unit: Array
    table: Array
    codes: Array
    numbers: Array
    own: Array

    def some(self, which: Array) -> _Queries:
        rows, unit, table, codes = (x[which] for x in self[:4])
        return _Queries(rows, unit, table, codes, self.numbers[:, which], self.own[which])


# What the rows of ``_Queries.numbers`` are: as in ``_kernels/warps``.
_EPSILON, _MOST, _SHARE, _REST, _FLOOR, _KNOWN, _SCALE, _LAST = range(8)


def searchable(metric: Metric, x: Any) -> bool:
    """Whether rows of this kind are screened; the others are compared in float64 throughout."""
    import torch  # noqa: PLC0415 - heavy

    kinds = (torch.float32, torch.float16, torch.bfloat16)
    return metric.scale_invariant and x.dtype in kinds and x.is_contiguous()


def fit(metric: Metric, x: Any) -> Any:
    """Return the profiles that hold most of some of the rows, orthonormal, most first."""
    import torch  # noqa: PLC0415 - heavy

    if not metric.sorts:
        return torch.zeros((RANK, x.shape[1]), dtype=torch.float32, device=x.device)
    some = x[:: max(1, len(x) // _SAMPLE)][:_SAMPLE].double()
    some = some[some.abs().amax(dim=1).isfinite()]
    some = some / some.abs().amax(dim=1, keepdim=True).clamp(min=1e-300)
    unit = some.sort(dim=1)[0] / some.norm(dim=1, keepdim=True).clamp(min=1e-300)
    basis = torch.ones((x.shape[1], RANK), dtype=torch.float64, device=x.device)
    basis[:, 1:] = torch.linspace(-1, 1, x.shape[1], device=x.device)[:, None] ** torch.arange(
        1, RANK, device=x.device
    )
    for _ in range(_ROUNDS):
        basis = torch.linalg.qr(unit.T @ (unit @ basis))[0]
    basis[:, 0] *= torch.where((unit @ basis[:, 0]).sum() < 0, -1, 1)
    padded = torch.zeros((RANK, x.shape[1]), dtype=torch.float32, device=x.device)
    padded[: basis.shape[1]] = basis.T.float()
    return padded


def describe(metric: Metric, x: Any, basis: Any, *, name: str, first: int = 0) -> tuple[Any, ...]:
    """Return over, features and info of rows; raise for the first that is not finite."""
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    parts = [_describe(metric, x[part], basis) for part in spans(len(x), _DESCRIBED)]
    known = parts[0] if len(parts) == 1 else tuple(_cat(x) for x in zip(*parts, strict=True))
    check_finite(xp, known[0], name, first)
    return known[1:]


def _cat(parts: Any) -> Any:
    import torch  # noqa: PLC0415 - heavy

    return torch.cat(parts)


def _describe(metric: Metric, x: Any, basis: Any) -> tuple[Any, ...]:
    """Return the squares of rows, and what `describe` returns."""
    import torch  # noqa: PLC0415 - heavy

    squares, table = _sorted_products(x, basis)
    norm = squares.sqrt()
    zero = squares == 0
    if not metric.sorts:
        table = torch.zeros_like(table)
        table[:, 0] = 1
    rounding = _rounding(x.shape[1]) if metric.sorts else 0.0
    table = torch.where(zero[:, None], 0, table)
    square = table.double() ** 2
    left = (1 - square.sum(dim=1)).clamp(min=0) + rounding
    features = torch.cat([table, torch.where(zero, 0, left.sqrt() * (1 + 1e-6))[:, None]], dim=1)
    share = table[:, 0].double()
    usable = (share > _LEAST_SHARE) & (norm > 1e-30) & (norm < 1e30)
    # Nothing is concluded from NaN: such rows are scored.
    over = torch.where(zero, 0, torch.where((norm > 1e-30) & (norm < 1e30), 1 / norm, torch.nan))
    length = torch.where(usable, 1 / share, 0)
    rest = ((1 - square[:, 0]).clamp(min=0) + rounding).sqrt() * length
    # What sums of the tensor cores, which cut off rather than round, and float32 can be off.
    lost = (x.shape[1] + 64) * 2.0**-22 * length
    lost = torch.where(usable | zero, lost, torch.inf)
    weight = torch.where(usable, over * length, 0)
    info = torch.stack([weight, length, lost, rest], dim=1) * (1 + 1e-6)
    return squares, over.float(), features.float(), info.float()


def _rounding(width: int) -> float:
    """Return how far the rounding of coordinates can put a product of profiles off.

    Each is a sum in float32: in each lane of its share, then over the lanes (see ``profiles``).
    """
    coordinate = (width / 32 + 16) * 2.0**-24
    return float(2e-6 + 4.2 * coordinate * RANK**0.5)


def make_corpus(
    metric: Metric, x: Any, basis: Any = None, *, codes: str | None = None, name: str = "corpus",
    first: int = 0,
) -> DeviceCorpus:  # fmt: skip
    """Return rows ready to be searched.

    ``codes`` is ``float16`` or ``int8`` to keep folded rows beside them; without them float16 and
    bfloat16 rows are multiplied as they lie. The default is what is fastest for float32.
    """
    import torch  # noqa: PLC0415 - heavy

    basis = fit(metric, x) if basis is None else basis
    over, features, info = describe(metric, x, basis, name=name, first=first)
    tiles = -(-len(x) // TILE)
    scale = torch.ones(tiles, dtype=torch.float32, device=x.device)
    if codes is None and (x.dtype == torch.float32 or x.shape[1] % 32):
        codes = _choose_codes(x, info)
    made = None
    if codes:
        width = -(-x.shape[1] // TILE) * TILE
        made = torch.empty((tiles * TILE, width), dtype=getattr(torch, codes), device=x.device)
        lost = torch.empty(len(x), dtype=torch.float32, device=x.device)
        _encode(x, info[:, 0].contiguous(), made, scale, lost)
        info[:, 2] += lost
    lost = torch.where(info[:, 2:3].isinf(), 0, info[:, 2:3])
    most = _largest_of_tiles(torch.cat([info[:, 1:], lost], dim=1))
    return DeviceCorpus(x, over, features, info, most, made, scale, basis)


def _choose_codes(x: Any, info: Any) -> str:
    """Return int8 where the codes of a typical row lose little, float16 elsewhere."""
    import torch  # noqa: PLC0415 - heavy

    step = max(1, len(x) // TILE // TILE) * TILE  # some tiles, as they share a scale
    which = torch.arange(len(x), device=x.device)
    which = which[which % step < TILE]
    folded = x[which].float() * info[which, :1]
    unit = (_largest_of_tiles(folded.abs()).amax(dim=1) / 127 + 1e-30).repeat_interleave(TILE)
    unit = unit[: len(folded), None]
    lost = (folded - unit * (folded / unit).round()).norm(dim=1)
    return "int8" if float(lost.median()) <= _INT8_LOSS else "float16"


def _largest_of_tiles(values: Any) -> Any:
    import torch  # noqa: PLC0415 - heavy

    missing = -len(values) % TILE
    padded = torch.nn.functional.pad(values, (0, 0, 0, missing)) if missing else values
    return padded.reshape(-1, TILE, values.shape[1]).amax(dim=1)


class FoundOnDevice(NamedTuple):
    """The best rows of each query in float64, on the device, and how many were scored for each."""

    scores: Array
    indices: Array
    scored: Array


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
    return FoundOnDevice(*(_cat(fields) for fields in zip(*parts, strict=True)))


class Away(NamedTuple):
    """Rows in host memory that a device searches: described anew, a section at a time."""

    rows: Array
    basis: Array


def read_device(device: Any) -> Any:
    """Return a CUDA device, with its number."""
    try:
        import torch  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ImportError(
            "device: expected PyTorch to be installed; pip install 'recos[torch]'"
        ) from error
    found = torch.device(device)
    if found.type != "cuda" or not torch.cuda.is_available():
        raise ValueError(
            f"device: expected a CUDA device that this machine has, got {device!r}; without one, "
            "leave it out"
        )
    # An index may be missing, whatever the types of PyTorch say.
    here = torch.device("cuda", torch.cuda.current_device())
    return here if str(found) == "cuda" else found


def detached(given: Inputs) -> Any:
    """Return vectors as a tensor that no gradient is followed of, wherever it lies."""
    import torch  # noqa: PLC0415 - heavy

    if not given.home.xp.__name__.endswith("torch"):
        return torch.from_numpy(np.ascontiguousarray(on_host(given).arrays[0]))
    x = given.arrays[0]
    return (torch.from_numpy(x) if isinstance(x, np.ndarray) else x).detach()


def on_device(queries: Any, device: Any) -> Any:
    """Return queries as a contiguous tensor on a device."""
    import torch  # noqa: PLC0415 - heavy

    x = (
        torch.from_numpy(np.ascontiguousarray(queries))
        if isinstance(queries, np.ndarray)
        else queries
    )
    x = x.detach().to(device)
    kinds = torch.float16, torch.bfloat16, torch.float32, torch.float64
    return (x if x.dtype in kinds else x.float()).contiguous()


def keep(metric: Metric, x: Any, dtype: str, device: Any) -> DeviceCorpus | Away:
    """Return a copy of rows on a device, or in pinned host memory where they do not fit."""
    import torch  # noqa: PLC0415 - heavy

    kind = getattr(torch, dtype)
    for part in spans(len(x), _DESCRIBED):
        if x.dtype != kind:
            some = x[part].to(device)
            check_finite_rows(some, "vectors", part.start)
            if torch.isinf(some.to(kind)).any():
                raise ValueError(
                    f"vectors: expected numbers that fit into {dtype}, got larger ones; scale "
                    "them, or store them in more digits"
                )
    # Codes take half as much again as float32 rows, what is known of a row 64 bytes.
    size = len(x) * (x.shape[1] * kind.itemsize * (1.5 if kind == torch.float32 else 1) + 64)
    if size > _KEPT * torch.cuda.mem_get_info(device)[0]:
        rows = torch.empty(x.shape, dtype=kind, pin_memory=True)
        rows.copy_(x)
        return Away(rows, fit(metric, rows).to(device))
    rows = torch.empty(x.shape, dtype=kind, device=device)
    rows.copy_(x)
    return _section(metric, rows, None, "vectors", 0)


def search_kept(
    metric: Metric, queries: Any, corpus: DeviceCorpus | Away, k: int, mask: Any, *, memory: int
) -> Iterator[np.ndarray]:
    """Return the best rows of a part of an index as NumPy arrays: see `FoundOnDevice`."""
    import torch  # noqa: PLC0415 - heavy

    allowed = None if mask is None else torch.from_numpy(mask).to(queries.device)
    if isinstance(corpus, Away):
        found = search_rows(
            metric, queries, corpus.rows, k, None, allowed, basis=corpus.basis, memory=memory
        )
    else:
        found = search(metric, queries, corpus, k, None, allowed, memory=memory)
    # As one array: the host waits for the device once.
    together = torch.cat(
        [found.scores.view(torch.int64), found.indices, found.scored.long()[:, None]], dim=1
    )
    host = together.cpu().numpy()
    return iter((host[:, :k].copy().view(np.float64), host[:, k:-1].copy(), host[:, -1].copy()))


def to_host(x: Any, which: np.ndarray) -> np.ndarray:
    """Return some rows as a NumPy array; bfloat16 becomes float32."""
    import torch  # noqa: PLC0415 - heavy

    rows = x[torch.from_numpy(which).to(x.device)].cpu()
    found: np.ndarray = (rows.float() if rows.dtype == torch.bfloat16 else rows).numpy()
    return found


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
        corpus = _section(metric, stored[part].to(queries.device), basis, name, part.start)
        mine = None if own is None else own - part.start
        some = None if allowed is None else allowed[part]
        best = search(metric, queries, corpus, k, mine, some, memory=memory // 2)
        best.indices[best.indices >= 0] += part.start
        found = [merge([*found, best], k)]
    return found[0]


def _sections(stored: Any, memory: int) -> list[slice]:
    room = stored.shape[1] * (4 if stored.is_cuda else 8) + 128
    return spans(len(stored), max(TILE, memory // 2 // room // TILE * TILE))


def _section(metric: Metric, rows: Any, basis: Any, name: str, first: int) -> DeviceCorpus:
    if searchable(metric, rows):
        return make_corpus(metric, rows.contiguous(), basis, name=name, first=first)
    check_finite_rows(rows, name, first)
    return DeviceCorpus(rows.contiguous(), *(rows[:0],) * 7)


def check_finite_rows(x: Any, name: str, first: int = 0) -> None:
    """Raise for the first row that is not finite."""
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    check_finite(xp, x.abs().amax(dim=1), name, first)


def merge(parts: list[FoundOnDevice], k: int) -> FoundOnDevice:
    """Return the best of what was found in parts of the rows, which are in order."""
    import torch  # noqa: PLC0415 - heavy

    if len(parts) == 1:
        return parts[0]
    scores, indices = (torch.cat([part[field] for part in parts], dim=1) for field in (0, 1))
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    scored = torch.stack([part.scored for part in parts]).sum(dim=0)
    return FoundOnDevice(scores.gather(1, order), indices.gather(1, order), scored)


def reaching_rows(
    metric: Metric, queries: Any, stored: Any, threshold: float, *, memory: int, name: str
) -> tuple[Any, Any, Any]:
    """Return the pairs that reach a threshold, of rows described a section at a time."""
    import torch  # noqa: PLC0415 - heavy

    none = torch.empty(0, dtype=torch.int64, device=queries.device)
    found = [(none, none, none.double())]
    for part in _sections(stored, memory):
        corpus = _section(metric, stored[part], None, name, part.start)
        i, j, scores = reaching(metric, queries, corpus, threshold, memory=memory // 2)
        found.append((i, j + part.start, scores))
    return tuple(_cat(fields) for fields in zip(*found, strict=True))


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
        left = _screen(metric, queries, corpus, k, own, allowed, found, memory)
    if len(left):
        check_finite_rows(queries, "queries")
    for part in _few(left):
        best = _compare_all(metric, queries[part], corpus, k, own[part], allowed)
        for field, values in zip(found, best, strict=True):
            field[part] = values.to(field.dtype)
    return found


def _few(which: Any, most: int = 64) -> list[Any]:
    """Return the parts of some numbers, each at most so long."""
    return [which[part] for part in spans(len(which), max(1, most))]


def _screen(
    metric: Metric, queries: Any, corpus: DeviceCorpus, k: int, own: Any, allowed: Any,
    found: FoundOnDevice, memory: int,
) -> Any:  # fmt: skip
    """Write what is found; return which queries can only be compared with all rows.

    The host waits for the device once, when everything is under way.
    """
    import torch  # noqa: PLC0415 - heavy

    codes, unit, scale, epsilon = _encoded(queries, corpus)
    maxima = _maxima(codes, scale, corpus, None if allowed is None else allowed.float())
    mine = _prepare(metric, queries, corpus, own, codes, unit, scale, epsilon)
    _set_floors(mine.numbers, maxima, corpus.tiles, k + 1)
    floor = mine.numbers[_FLOOR]
    certain = (floor > 0) & (mine.table[:, 0] > _LEAST_SHARE)
    floor.copy_(torch.where(certain, floor, torch.inf))
    room = max(_ROOM, 4 * k)
    candidates, counts = _candidates(mine, maxima, corpus, k, room)
    flags = torch.where(certain, 0, 4).int()
    _rank(metric, mine, corpus, candidates, counts, found, flags)
    flags = flags.cpu()
    if not flags.any():
        return flags[:0]
    again = ((flags > 0) & (flags < 4)).nonzero()[:, 0].to(maxima.device)
    if len(again):
        again = again[counts[again].argsort()]
        for part in _few(again, memory // (32 * int(counts[again].max()))):
            some = mine.some(part)
            wide = max(k, int(counts[part].max()))
            candidates, more = _candidates(some, maxima[:, part].contiguous(), corpus, k, wide)
            best = _scored(metric, some, corpus, k, candidates, more)
            for field, values in zip(found, best, strict=True):
                field[part] = values.to(field.dtype)
    return (flags >= 4).nonzero()[:, 0].to(maxima.device)


def _encoded(queries: Any, corpus: DeviceCorpus) -> tuple[Any, Any, Any, Any]:
    """Return queries as codes, of length 1, the scales of codes, and what these lose."""
    import torch  # noqa: PLC0415 - heavy

    wide = queries.double()
    wide = wide / wide.abs().amax(dim=1, keepdim=True).clamp(min=1e-300)
    unit = (wide / wide.norm(dim=1, keepdim=True).clamp(min=1e-300)).float()
    right = corpus.rows if corpus.codes is None else corpus.codes
    codes, scale = unit, torch.ones(len(unit), device=unit.device)
    if right.dtype == torch.int8:
        scale = unit.abs().amax(dim=1) / 127 + 1e-30
        codes = (unit / scale[:, None]).round()
    codes = codes.to(right.dtype)
    epsilon = torch.addcmul(unit, codes, scale[:, None], value=-1).norm(dim=1) * 1.00001 + 2e-6
    padded = right.shape[1] - unit.shape[1]
    return (torch.nn.functional.pad(codes, (0, padded)) if padded else codes), unit, scale, epsilon


def _prepare(
    metric: Metric, queries: Any, corpus: DeviceCorpus, own: Any, codes: Any, unit: Any, scale: Any,
    epsilon: Any,
) -> _Queries:  # fmt: skip
    import torch  # noqa: PLC0415 - heavy

    _, _, table, _ = _describe(metric, queries.float().contiguous(), corpus.basis)
    rounding = _rounding(queries.shape[1]) if metric.sorts else 0.0
    rest = ((1 - table[:, 0].double() ** 2).clamp(min=0) + rounding).sqrt().float()
    numbers = torch.stack(
        [
            epsilon,
            1 + epsilon,
            table[:, 0],
            rest * (1 + 1e-6),
            epsilon,
            epsilon,  # to be set
            scale,
            table[:, -1],
        ]
    )
    return _Queries(queries.contiguous(), unit, table, codes, numbers, own)


def _set_floors(numbers: Any, maxima: Any, tiles: Any, k: int) -> None:
    """Set what the k-th best score is at least, and a maximum that about k tiles reach.

    The best rows of k groups of tiles are k rows, and the lower limits of their scores are known.
    """
    group = max(1, min(16, len(maxima) // (4 * k)))
    count = len(maxima) // group
    most = maxima[: count * group].reshape(count, group, -1).amax(dim=1)
    limits = tiles[: count * group].reshape(count, group, -1).amax(dim=1)[:, :, None]
    lost = numbers[_EPSILON] * limits[:, 0] + numbers[_MOST] * limits[:, 3]
    lower = (most - lost) / (numbers[_SHARE] + numbers[_REST] * limits[:, 2])
    best, which = lower.T.contiguous().topk(k, dim=1, sorted=False)
    numbers[_FLOOR] = best.amin(dim=1) * (1 - 1e-6)
    numbers[_KNOWN] = most.gather(0, which.T).amin(dim=0)


def _candidates(
    queries: _Queries, maxima: Any, corpus: DeviceCorpus, k: int, room: int
) -> tuple[Any, Any]:
    """Return rows that may be among the k best with their upper limits, and how many there are.

    Floors are raised to the k-th best lower limit on the way. What does not fit is counted only.
    """
    import torch  # noqa: PLC0415 - heavy

    found, lower, counts = _room_for(len(queries.unit), room, maxima.device)
    for stage in (0, 1):
        _sift(queries, maxima, corpus, found, lower, counts, stage)
        floor = queries.numbers[_FLOOR]
        floor.copy_(torch.maximum(floor, lower.topk(k, dim=1)[0][:, -1]))
    return found, counts


def _scored(
    metric: Metric, queries: _Queries, corpus: DeviceCorpus, k: int, found: Any, counts: Any
) -> FoundOnDevice:
    """Return the k best candidates, scored in float64."""
    import torch  # noqa: PLC0415 - heavy

    row, upper = found[..., 0], found[..., 1].view(torch.float32)
    there = torch.arange(row.shape[1], device=row.device) < counts[:, None]
    kept = there & (upper >= queries.numbers[_FLOOR][:, None])
    query, place = kept.nonzero(as_tuple=True)
    which = row[query, place].long()
    scores = torch.full(row.shape, -torch.inf, dtype=torch.float64, device=row.device)
    scores[query, place] = pair_scores(metric, queries.rows, corpus.rows, query, which)
    order = torch.where(kept, row, 2**31 - 1).argsort(dim=1)
    scores, row = scores.gather(1, order), row.gather(1, order)
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    scores, row = scores.gather(1, order), row.gather(1, order).long()
    return FoundOnDevice(scores, torch.where(scores > -torch.inf, row, -1), kept.sum(dim=1))


def _compare_all(
    metric: Metric, queries: Any, corpus: DeviceCorpus, k: int, own: Any, allowed: Any
) -> FoundOnDevice:
    """Return the k best of all rows, all compared in float64."""
    import torch  # noqa: PLC0415 - heavy

    scores = torch.empty((len(queries), 0), dtype=torch.float64, device=queries.device)
    indices = torch.empty((len(queries), 0), dtype=torch.int64, device=queries.device)
    for part, some, doubtful in _all_scores(metric, queries, corpus.rows):
        number = torch.arange(part.start, part.stop, device=queries.device)
        out = own[:, None] == number
        out = out if allowed is None else out | ~allowed[part]
        scores = torch.cat([scores, torch.where(out, -torch.inf, some)], dim=1)
        indices = torch.cat([indices, number.expand(len(queries), -1)], dim=1)
        # Products of the same rows may differ by their places; scores must not.
        least = scores.topk(min(k, scores.shape[1]), dim=1)[0][:, -1:] - _CLOSE
        near = ((scores[:, -len(number) :] >= least) | doubtful) & ~out
        i, j = near.nonzero(as_tuple=True)
        scores[i, scores.shape[1] - len(number) + j] = pair_scores(
            metric, queries, corpus.rows, i, j + part.start
        )
        order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
        scores, indices = scores.gather(1, order), indices.gather(1, order)
    indices = torch.where(scores > -torch.inf, indices, -1)
    return FoundOnDevice(scores, indices, torch.full_like(indices[:, 0], len(corpus.rows)))


def _all_scores(metric: Metric, u: Any, v: Any) -> Iterator[tuple[slice, Any, Any]]:
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
        for few in _few(left):
            for columns, scores, doubtful in _all_scores(metric, some[few], corpus.rows):
                i, j = ((scores >= threshold - _CLOSE) | doubtful).nonzero(as_tuple=True)
                found.append((few[i] + part.start, j + columns.start))
    i, j = (_cat(fields) for fields in zip(*found, strict=True))
    scores = pair_scores(metric, queries, corpus.rows, i, j)
    kept = scores >= threshold
    return i[kept], j[kept], scores[kept]


def _reaching(
    metric: Metric, queries: Any, corpus: DeviceCorpus, threshold: float, memory: int
) -> tuple[list[tuple[Any, Any]], Any]:
    """Return pairs that may reach a threshold, and queries of which nothing is known."""
    import torch  # noqa: PLC0415 - heavy

    codes, unit, scale, epsilon = _encoded(queries, corpus)
    maxima = _maxima(codes, scale, corpus, None)
    own = torch.full((len(queries),), -1, dtype=torch.int64, device=queries.device)
    mine = _prepare(metric, queries, corpus, own, codes, unit, scale, epsilon)
    mine.numbers[_FLOOR], mine.numbers[_KNOWN] = threshold * (1 - 1e-6), torch.inf
    certain = mine.table[:, 0] > _LEAST_SHARE
    which, found = certain.nonzero()[:, 0], []
    counts = torch.full((len(queries),), _ROOM, dtype=torch.int32, device=queries.device)
    while len(which):
        which = which[counts[which].argsort()]
        full = []
        for part in _few(which, memory // (12 * int(counts[which].max()))):
            some, room = mine.some(part), int(counts[part].max())
            rows, lower, more = _room_for(len(part), room, queries.device)
            _sift(some, maxima[:, part].contiguous(), corpus, rows, lower, more, 1)
            fits = more <= room
            there = torch.arange(room, device=more.device) < (more * fits)[:, None]
            i, place = there.nonzero(as_tuple=True)
            found.append((part[i], rows[i, place, 0].long()))
            counts[part] = more
            full.append(part[~fits])
        which = torch.cat(full)
    return found, (~certain).nonzero()[:, 0]


def _room_for(size: int, room: int, device: Any) -> tuple[Any, Any, Any]:
    """Return room for rows and the bits of their upper limits, for their lower ones, and counts."""
    import torch  # noqa: PLC0415 - heavy

    found = torch.full((size, room, 2), -1, dtype=torch.int32, device=device)
    lower = torch.full((size, room), -1.0, device=device)
    return found, lower, torch.zeros(size, dtype=torch.int32, device=device)


def _warps() -> Any:
    from recos._kernels import warps  # noqa: PLC0415 - loads Numba

    return warps


def _sorted_products(x: Any, basis: Any) -> Any:
    """Return the squares of rows in float64, and products of sorted unit rows with vectors."""
    if x.is_cuda and _warps().fits(x):
        return _warps().describe(x, basis)
    wide = x.double()
    squares = (wide * wide).sum(dim=1)
    unit = wide / squares.sqrt().clamp(min=1e-300)[:, None]
    return squares, (unit.sort(dim=1)[0] @ basis.double().T).float()


def _encode(x: Any, weight: Any, codes: Any, scale: Any, lost: Any) -> None:
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


def _maxima(codes: Any, scale: Any, corpus: DeviceCorpus, weight: Any) -> Any:
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


def _rank(
    metric: Metric, queries: _Queries, corpus: DeviceCorpus, candidates: Any, counts: Any,
    found: FoundOnDevice, flags: Any,
) -> None:  # fmt: skip
    """Write the best of the candidates; flag queries that had too many, or a doubtful one."""
    k, room = found.scores.shape[1], candidates.shape[1]
    if corpus.rows.is_cuda and _warps().fits(corpus.rows, queries.rows) and room <= _MOST_RANKED:
        _warps().rank(
            queries.rows, corpus.rows, queries.numbers[_FLOOR].contiguous(), candidates, counts,
            *found, flags, sorts=metric.sorts,
        )  # fmt: skip
        return
    best = _scored(metric, queries, corpus, k, candidates, counts)
    for field, values in zip(found, best, strict=True):
        field[:] = values
    flags |= (counts > room).int()


def _sift(
    queries: _Queries, maxima: Any, corpus: DeviceCorpus, found: Any, lower: Any, counts: Any,
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
    floor = numbers[_FLOOR]
    alive = (maxima >= numbers[_KNOWN]) & (floor <= 1)
    if stage:
        slack = numbers[_EPSILON] * tiles[:, 0] + numbers[_MOST] * tiles[:, 1]
        slack = slack + floor.clamp(max=1) * numbers[_REST] * tiles[:, 2]
        alive = ~alive & ~(maxima + slack < floor * numbers[_SHARE]) & (floor <= 1)
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

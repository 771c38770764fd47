"""What is known of the rows on a device: lengths, profiles, codes and the limits of tiles."""

from __future__ import annotations

from typing import Any

from recos._arrays import check_finite
from recos._blocks import spans
from recos._device import steps
from recos._device.records import RANK, TILE, DeviceCorpus
from recos.metrics import Metric

DESCRIBED = 2**20  # rows at a time
LEAST_SHARE = 0.25  # of a profile that the first coordinate must hold
_SAMPLE = 128  # rows that a basis is fitted to
_ROUNDS = 3  # of the power iteration that fits it
_INT8_LOSS = 0.03  # of a typical unit row, up to which codes of eight bits rule out enough


def searchable(metric: Metric, x: Any) -> bool:
    """Whether rows of this kind are screened; the others are compared in float64 throughout."""
    import torch  # noqa: PLC0415 - heavy

    kinds = (torch.float32, torch.float16, torch.bfloat16)
    return metric.scale_invariant and x.dtype in kinds and x.is_contiguous()


def check_finite_rows(x: Any, name: str, first: int = 0) -> None:
    """Raise for the first row that is not finite."""
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    check_finite(xp, x.abs().amax(dim=1), name, first)


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
    over, features, info = _described(metric, x, basis, name=name, first=first)
    tiles = -(-len(x) // TILE)
    scale = torch.ones(tiles, dtype=torch.float32, device=x.device)
    if codes is None and (x.dtype == torch.float32 or x.shape[1] % 32):
        codes = _choose_codes(x, info)
    made = None
    if codes:
        width = -(-x.shape[1] // TILE) * TILE
        made = torch.empty((tiles * TILE, width), dtype=getattr(torch, codes), device=x.device)
        lost = torch.empty(len(x), dtype=torch.float32, device=x.device)
        steps.encode(x, info[:, 0].contiguous(), made, scale, lost)
        info[:, 2] += lost
    lost = torch.where(info[:, 2:3].isinf(), 0, info[:, 2:3])
    most = _largest_of_tiles(torch.cat([info[:, 1:], lost], dim=1))
    return DeviceCorpus(x, over, features, info, most, made, scale, basis)


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


def _described(metric: Metric, x: Any, basis: Any, *, name: str, first: int) -> tuple[Any, ...]:
    """Return over, features and info of rows; raise for the first that is not finite."""
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    parts = [describe(metric, x[part], basis) for part in spans(len(x), DESCRIBED)]
    known = parts[0] if len(parts) == 1 else tuple(xp.concat(x) for x in zip(*parts, strict=True))
    check_finite(xp, known[0], name, first)
    return known[1:]


def describe(metric: Metric, x: Any, basis: Any) -> tuple[Any, ...]:
    """Return squares of rows in float64, and their over, features and info (see `DeviceCorpus`)."""
    import torch  # noqa: PLC0415 - heavy

    squares, table = steps.sorted_products(x, basis)
    norm = squares.sqrt()
    zero = squares == 0
    if not metric.sorts:
        table = torch.zeros_like(table)
        table[:, 0] = 1
    rounding = profile_rounding(x.shape[1]) if metric.sorts else 0.0
    table = torch.where(zero[:, None], 0, table)
    square = table.double() ** 2
    left = (1 - square.sum(dim=1)).clamp(min=0) + rounding
    features = torch.cat([table, torch.where(zero, 0, left.sqrt() * (1 + 1e-6))[:, None]], dim=1)
    share = table[:, 0].double()
    usable = (share > LEAST_SHARE) & (norm > 1e-30) & (norm < 1e30)
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


def profile_rounding(width: int) -> float:
    """Return how far the rounding of coordinates can put a product of profiles off.

    Each is a sum in float32: in each lane of its share, then over the lanes (see ``profiles``).
    """
    coordinate = (width / 32 + 16) * 2.0**-24
    return float(2e-6 + 4.2 * coordinate * RANK**0.5)


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

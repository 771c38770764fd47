"""What is known of queries: codes to multiply, and numbers that their limits are made of."""

from __future__ import annotations

from typing import Any

from recos._device.corpus import describe, profile_rounding
from recos._device.records import DeviceCorpus, Queries
from recos.metrics import Metric


def encoded(queries: Any, corpus: DeviceCorpus) -> tuple[Any, Any, Any, Any]:
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


def prepare(
    metric: Metric, queries: Any, corpus: DeviceCorpus, own: Any, codes: Any, unit: Any, scale: Any,
    epsilon: Any,
) -> Queries:  # fmt: skip
    import torch  # noqa: PLC0415 - heavy

    _, _, table, _ = describe(metric, queries.float().contiguous(), corpus.basis)
    rounding = profile_rounding(queries.shape[1]) if metric.sorts else 0.0
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
    return Queries(queries.contiguous(), unit, table, codes, numbers, own)

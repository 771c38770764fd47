"""Rows that an index keeps: on a device, or in pinned host memory where they do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from recos._arrays import Array, Inputs, on_host
from recos._blocks import spans
from recos._device.corpus import DESCRIBED, check_finite_rows, fit
from recos._device.records import DeviceCorpus
from recos._device.sections import search_rows, section
from recos._device.topk import search
from recos.metrics import Metric

DTYPES = ("float32", "float16", "bfloat16")  # that rows are kept in
_KEPT = 0.9  # of the free memory of a device that rows may fill


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
    for part in spans(len(x), DESCRIBED):
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
    return section(metric, rows, None, "vectors", 0)


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

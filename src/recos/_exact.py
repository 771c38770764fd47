"""Similarities of pairs of rows on a device, their terms summed in float64.

A kernel sorts in registers and sums (``_kernels/warps``); plain PyTorch does the same where it
cannot, and is what it is tested against. The few pairs whose bound nearly cancels are brought to
the host and summed without rounding.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from recos._arrays import Array, Inputs, check_finite, is_concrete, is_tracked
from recos._blocks import spans
from recos._terms import Doubt, Rows, Terms, aligned, aligned_exactly
from recos.metrics import Metric, divide

_NUMBERS = 2**22  # of pairs that plain PyTorch scores at a time
_WORTH_SPLITTING = 64  # numbers of a row from which on the tensor cores are the faster
_DOUBTFUL = 2**12  # pairs that are brought to the host at a time


def pair_scores(
    metric: Metric,
    u: Array,
    v: Array,
    which_u: Array = None,
    which_v: Array = None,
    *,
    given: Inputs | None = None,
) -> Array:
    """Return the similarities of pairs of rows in float64, shape (n,).

    Pair i is row ``which_u[i]`` of ``u`` with row ``which_v[i]`` of ``v``; without numbers it is
    row i, or the only row there is. Rows of inputs that are ``given`` are checked to be finite.
    """
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    dot, bound, other, square_u, square_v = sums(u, v, which_u, which_v)
    if given is not None:
        for square, name in zip((square_u, square_v), given.names, strict=True):
            check_finite(xp, square, name)
    one, norm_u, norm_v = dot.new_ones(()), square_u.sqrt(), square_v.sqrt()
    # Of the two bounds only the one that the sign asks for is known.
    scores: Array = divide(xp, metric, Terms(dot, bound, bound, norm_u, norm_v, one, one))
    if metric.sorts:
        wide = given is None or str(given.dtype).endswith("64")
        least = Doubt.of(np.float64 if wide else np.float32, np.float64).least * norm_u * norm_v
        for some in (
            ((bound.abs() < least) | (other.abs() < least)).nonzero()[:, 0].split(_DOUBTFUL)
        ):
            pair = (_picked(x, which, some) for x, which in ((u, which_u), (v, which_v)))
            scores[some] = _without_rounding(metric, *pair)
    return scores


@cache
def has_triton() -> bool:
    """Whether Triton is installed, in which kernels of matrix products are written."""
    try:
        import triton  # noqa: F401, PLC0415 - optional, and heavy
    except ImportError:
        return False
    return True


def has_ratios(metric: Metric, left: Rows, right: Rows) -> bool:
    """Whether a kernel makes the scores of these rows with one another, without gradients."""
    return _fits_ratios(metric, left.x, right.x) and not (is_tracked(left.x) or is_tracked(right.x))


def has_gradient(metric: Metric, x: Array, y: Array, dtype: Any) -> bool:
    """Whether kernels make the scores of all pairs of these rows, and their gradient."""
    if not (_fits_ratios(metric, x, y) and len(x) and len(y)):
        return False
    torch = sys.modules["torch"]
    forward = torch.autograd.forward_ad._current_level >= 0
    return bool(dtype == torch.float32 and not forward and (is_tracked(x) or is_tracked(y)))


def _fits_ratios(metric: Metric, x: Array, y: Array) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not (metric.sorts and isinstance(x, torch.Tensor) and x.is_cuda):
        return False
    plain = is_concrete(x) and is_concrete(y) and x.dtype != torch.float64
    return bool(plain and x.shape[1] >= _WORTH_SPLITTING and has_triton())


def sums(u: Array, v: Array, which_u: Array = None, which_v: Array = None) -> Array:
    """Return float64 sums of pairs of rows, shape (5, n).

    They are the dot product, the bound for its sign, the other bound where the sign is not certain
    (elsewhere infinite), and the squares of both norms.
    """
    import torch  # noqa: PLC0415 - heavy

    from recos._kernels import warps  # noqa: PLC0415 - loads Numba

    if warps.fits(u, v):
        return warps.score(u, v, which_u, which_v)
    given = [x for x in (which_u, which_v) if x is not None]
    count = len(given[0]) if given else max(len(u), len(v))
    parts = [
        _sums(*(_picked(x, which, part) for x, which in ((u, which_u), (v, which_v))))
        for part in spans(count, max(1, _NUMBERS // u.shape[1]))
    ]
    return torch.cat([torch.empty((5, 0), dtype=torch.float64, device=u.device), *parts], dim=1)


def _sums(u: Array, v: Array) -> Array:
    import torch  # noqa: PLC0415 - heavy
    from array_api_compat import torch as xp  # noqa: PLC0415 - heavy

    terms = aligned(xp, *torch.broadcast_tensors(u.double(), v.double()), sorts=True)
    negative, size = terms.dot < 0, terms.scale_u * terms.scale_v
    near = Doubt.of(np.float64, np.float64).near * terms.norm_u * terms.norm_v
    other = torch.where(negative, terms.up, terms.down) * size
    return torch.stack(
        [
            terms.dot * size,
            torch.where(negative, terms.down, terms.up) * size,
            torch.where(terms.dot.abs() < near, other, torch.inf),
            (terms.norm_u * terms.scale_u) ** 2,
            (terms.norm_v * terms.scale_v) ** 2,
        ]
    )


def _picked(x: Array, which: Array, some: Any) -> Array:
    if which is not None:
        return x[which[some]]
    return x[some] if len(x) > 1 else x


def _without_rounding(metric: Metric, u: Array, v: Array) -> Array:
    import torch  # noqa: PLC0415 - heavy

    pair = (x.cpu().double().numpy() for x in torch.broadcast_tensors(u, v))
    scores = np.asarray(divide(np, metric, aligned_exactly(*pair)))
    return torch.from_numpy(scores).to(u.device)

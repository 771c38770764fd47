"""All pairs with gradients on a GPU: the forward kernel once, and matrix products back.

The similarity does not change with the lengths of rows, so its gradient is that of the unit rows,
divided by the length. Sorting moves numbers about: what arrives at a sorted row goes back to the
places its numbers came from.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import torch
from array_api_compat import torch as xp

from recos._kernels import triton
from recos._terms import Doubt, Rows, fold, norms, scaled


class _Side:
    """Unit rows, their folded sorted selves, the order that sorts them, and their lengths."""

    def __init__(self, x: torch.Tensor, *, right: bool) -> None:
        x, scale = scaled(xp, x, x.dtype)
        norm = norms(xp, x)
        self.length = norm * scale
        self.unit = x / torch.where(norm > 0, norm, 1.0)[:, None]
        ascending, self.order = self.unit.sort(dim=1)
        self.even, self.odd = fold(xp, ascending)
        self.twice = right and x.shape[1] % 2 == 1
        if self.twice:  # the middle is its own mirror image
            self.even[:, -1:] *= 2
        self.rows = Rows(self.unit, self.even, self.odd, (norm > 0).to(x.dtype), scale)

    def gradient(self, unit: torch.Tensor, even: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
        half = odd.shape[1]
        middle = even[:, half:] * (2 if self.twice else 1)
        even = even[:, :half]
        ascending = torch.cat([even - odd, middle, (even + odd).flip(1)], dim=1)
        over = torch.where(self.length > 0, 1 / self.length, 0.0)
        return unit.scatter_add(1, self.order, ascending) * over[:, None]


class _Pairwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.sides = left, right = _Side(x, right=False), _Side(y, right=True)
        bounds = torch.empty((len(x), len(y)), dtype=torch.float32, device=x.device)
        doubt = Doubt.of(np.float32, np.float32)
        scores = triton.ratios(left.rows, right.rows, *doubt, bounds)
        ctx.save_for_backward(scores, bounds)
        enabled = torch.is_autocast_enabled(x.device.type)
        ctx.dtype = torch.get_autocast_dtype(x.device.type) if enabled else torch.float32
        return scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        slopes = triton.slopes(grad, *ctx.saved_tensors, ctx.dtype)
        left, right = ctx.sides
        with torch.autocast(grad.device.type, enabled=False):
            return tuple(
                side.gradient(*(
                    (slope.T if side is right else slope).mm(part.to(ctx.dtype)).float()
                    for slope, part in zip(
                        slopes, (other.unit, other.even, other.odd), strict=True
                    )
                ))
                if needed
                else None
                for side, other, needed in (
                    (left, right, ctx.needs_input_grad[0]),
                    (right, left, ctx.needs_input_grad[1]),
                )
            )  # fmt: skip


def pairwise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
    """Return the recos of all rows with all rows, None where some of it is doubtful."""
    scores = _Pairwise.apply(x, y)
    return None if bool(scores.detach().isnan().any()) else scores

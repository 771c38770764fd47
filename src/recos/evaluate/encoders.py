"""Encoders: what makes vectors of texts, found by name, path or as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Encoder(Protocol):
    """What makes vectors of texts.

    Attributes
    ----------
    name : str
        What the report calls it.
    facts : dict
        checkpoint, pooling, dimension, licence and size, as far as they are known.
    identity : str or None
        Tells it from every other model, for the cache; None where that cannot be known, and its
        vectors are not cached.
    """

    name: str
    facts: dict[str, Any]
    identity: str | None

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""


def find_encoder(
    encoder: str | Path | Callable[[list[str]], Any] | Encoder, *, device: str | None = None
) -> Encoder:
    """Find an encoder."""
    raise NotImplementedError


def default_encoder() -> Encoder:
    """Return the small encoder that comes with the package: NumPy alone, no network."""
    raise NotImplementedError

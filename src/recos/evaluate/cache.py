"""Vectors of texts: encoded in blocks, and each block kept as soon as it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recos.evaluate.encoders import Encoder


def embed(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    cache: Path | None = None,
    progress: bool | None = None,
    block: int = 256,
) -> np.ndarray:
    """Return one row for each text, float32, shape (n, d); each different text is encoded once."""
    raise NotImplementedError

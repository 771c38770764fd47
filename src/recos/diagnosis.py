"""What recos and cheap transforms will change on some embeddings, without any human scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Diagnosis:
    """What was measured on a sample of rows, and what to make of it (``advice``)."""

    advice: str

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self)


def diagnose(X: Any, /, *, memory: str | int = "256MiB", seed: int = 0) -> Diagnosis:
    """Say what recos and cheap transforms will change on some embeddings."""
    raise NotImplementedError

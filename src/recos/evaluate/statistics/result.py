"""What every test returns, and how numbers are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, ClassVar, Literal, get_args

import numpy as np

Alternative = Literal["two-sided", "greater", "less"]
SETTINGS = "settings are independent, though they share models and data sets"


@dataclass(frozen=True)
class Test:
    """A result and what it assumes.

    ``estimate`` with the interval from ``low`` to ``high`` says how much, ``p`` how surprising that
    would be if there were no difference. ``n`` is the number of observations the test had.
    """

    __test__: ClassVar[bool] = False  # it is no test of pytest

    name: str
    statistic: float
    p: float
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    assumes: str
    detail: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON knows it: numbers that are not finite become None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def numbers(values: Any, name: str, least: int = 2) -> np.ndarray:
    """Read a row of finite numbers."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or len(x) < least:
        raise ValueError(f"{name}: expected a row of {least} or more numbers, got shape {x.shape}")
    if not np.isfinite(x).all():
        where = int(np.flatnonzero(~np.isfinite(x))[0])
        raise ValueError(f"{name}: expected finite numbers, got {x[where]} at {where}")
    return x


def check_options(confidence: float, alternative: str = "two-sided") -> None:
    """Raise an error for what is no confidence, or no alternative."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: expected a share between 0 and 1, got {confidence}")
    if alternative not in get_args(Alternative):
        known = ", ".join(map(repr, get_args(Alternative)))
        raise ValueError(f"alternative: expected one of {known}, got {alternative!r}")


def labels(
    values: Sequence[Any] | np.ndarray, name: str, size: int
) -> tuple[list[str], np.ndarray]:
    """Read one label for each number: the labels in order of appearance, and which is where."""
    given = [str(value) for value in values]
    if len(given) != size:
        raise ValueError(f"{name}: expected {size} labels, one for each number, got {len(given)}")
    known = list(dict.fromkeys(given))
    place = {label: i for i, label in enumerate(known)}
    return known, np.array([place[label] for label in given])


def tail_of(below: float, above: float, alternative: Alternative) -> float:
    """Return p of the probabilities of what is as small or smaller, and as large or larger."""
    return {"less": below, "greater": above, "two-sided": min(1.0, 2 * min(below, above))}[
        alternative
    ]

"""What a comparison found, and its file ``results.json``, from which every report is made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

SCHEMA = 1  # raise it whenever a field changes its meaning or goes


@dataclass(frozen=True)
class Gain:
    """How much better a variant scores than the baseline on the same texts.

    ``p`` is that of ``test`` and ``adjusted`` the same among all gains of the comparison
    (Benjamini-Hochberg); ``bootstrap_p`` belongs to the interval. The gain is significant where
    ``adjusted`` is under 0.05 and the interval holds no 0.
    """

    estimate: float
    low: float
    high: float
    p: float
    test: str
    bootstrap_p: float
    adjusted: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether the data tell the two apart."""
        return self.adjusted < 0.05 and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class Cell:
    """One variant with one encoder on one task; ``other`` are further figures with intervals."""

    encoder: str
    task: str
    variant: str
    score: float
    low: float
    high: float
    other: dict[str, tuple[float, float, float]]
    gain: Gain | None  # of the baseline there is none


@dataclass(frozen=True)
class Comparison:
    """All figures of a comparison, and all that is needed to make it again.

    Scores are between -1 and 1. ``across`` holds, for each variant, the tests over all settings;
    ``sample`` the points of the scatter plots, one entry for each setting.
    """

    settings: dict[str, Any]
    encoders: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    cells: list[Cell]
    across: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    sample: list[dict[str, Any]] = field(default_factory=list)
    made: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def baseline(self) -> str:
        """The variant that the others are compared with."""
        return str(self.settings["baseline"])

    @property
    def variants(self) -> list[str]:
        """All variants, in the order asked for."""
        return list(self.settings["variants"])

    @property
    def others(self) -> list[str]:
        """All variants but the baseline."""
        return [name for name in self.variants if name != self.baseline]

    @property
    def encoder_names(self) -> list[str]:
        """All encoders, in the order asked for."""
        return [str(encoder["name"]) for encoder in self.encoders]

    @property
    def task_names(self) -> list[str]:
        """All tasks, in the order asked for."""
        return [str(task["name"]) for task in self.tasks]

    def cell(self, encoder: str, task: str, variant: str) -> Cell:
        """Return one of the cells."""
        for cell in self.cells:
            if (cell.encoder, cell.task, cell.variant) == (encoder, task, variant):
                return cell
        raise KeyError(f"no score of {variant} with {encoder} on {task}")

    def scores(self, variant: str) -> np.ndarray:
        """Return the scores of a variant, shape (encoders, tasks)."""
        return np.array(
            [
                [self.cell(encoder, task, variant).score for task in self.task_names]
                for encoder in self.encoder_names
            ]
        )

    def gains(self, variant: str) -> np.ndarray:
        """Return the scores of a variant less those of the baseline, shape (encoders, tasks)."""
        return np.asarray(self.scores(variant) - self.scores(self.baseline))

    def by_measure(self) -> dict[str, Comparison]:
        """Return a comparison for each measure: means over different measures mean nothing."""
        kinds = list(dict.fromkeys(str(task["measure"]) for task in self.tasks))
        if len(kinds) == 1:
            return {kinds[0]: self}
        found = {}
        for kind in kinds:
            tasks = [task for task in self.tasks if task["measure"] == kind]
            names = {str(task["name"]) for task in tasks}
            cells = [cell for cell in self.cells if cell.task in names]
            found[kind] = replace(self, tasks=tasks, cells=cells, across={})
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what ``results.json`` holds; numbers that are not finite become null."""
        found = plain(asdict(self))
        assert isinstance(found, dict)
        return found

    def save(self, path: Path) -> None:
        """Write ``results.json``."""
        write(path, json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Comparison:
        """Read ``results.json``."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            schema = content.pop("schema")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{path}: expected results of `recos compare`, got another kind of file "
                f"({type(error).__name__}); name the results.json that it wrote"
            ) from error
        if schema != SCHEMA:
            raise ValueError(
                f"{path}: expected results of schema {SCHEMA}, got {schema}; run `recos compare` "
                "again"
            )
        content["cells"] = [read_cell(cell) for cell in content["cells"]]
        return cls(**content)


def read_cell(content: dict[str, Any]) -> Cell:
    """Return a cell from its JSON."""
    cell: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in content.items()
    }
    cell["other"] = {name: _numbers(figure) for name, figure in content["other"].items()}
    gain = content["gain"]
    names = () if gain is None else gain
    cell["gain"] = gain and Gain(**dict(zip(names, _numbers(gain.values()), strict=True)))
    return Cell(**cell)


def write(path: Path, text: str) -> None:
    """Write a file beside and rename it, so that it is never half there."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _numbers(values: Iterable[Any]) -> Any:
    return tuple(math.nan if value is None else value for value in values)


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)

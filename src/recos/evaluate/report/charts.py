"""Charts as inline SVG: drawn here, coloured by the page's style sheet, described in words.

All are 360 units wide, so that their texts stay readable on a phone. Every chart has a title and a
description, and the page gives the numbers of each in a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from recos.evaluate.report.words import interval, points

WIDTH = 360
CLASSES = 5  # of human scores, each with a colour


class Row(NamedTuple):
    """A row of a forest plot; a heading has no estimate."""

    label: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    significant: bool = False


def forest(rows: Sequence[Row], title: str, description: str) -> str:
    """Draw estimates with their intervals, one below the other, around a line at 0."""
    left, right, top, step = 108, 302, 8, 22
    bottom = top + step * len(rows)
    values = [x for row in rows for x in row[1:4] if math.isfinite(x)]
    low, high = min([0.0, *values]), max([0.0, *values])
    pad = 0.04 * (high - low) or 0.001
    x = _Scale(low - pad, high + pad, left, right)
    parts = [_axis_x(x, top, bottom, 100)]
    parts.append(_line("zero", x(0), top, x(0), bottom))
    for i, row in enumerate(rows):
        y = top + step * (i + 0.5)
        if not math.isfinite(row.estimate):
            parts.append(_text(_short(row.label, 44), 0, y + 4, "head"))
            continue
        told = f"{row.label}: {points(row.estimate, signed=True)}"
        mark = ("real" if row.estimate > 0 else "lost") if row.significant else "open"
        parts.append(f"<g><title>{escape(told)}{_told(row)}</title>")
        parts.append(_text(_short(row.label, 15), left - 8, y + 4, "end"))
        if math.isfinite(row.low):
            parts.append(_line(f"span {mark}", x(row.low), y, x(row.high), y))
        parts.append(f'<circle class="{mark}" cx="{x(row.estimate):.1f}" cy="{y:.1f}" r="4.5"/>')
        parts.append(_text(points(row.estimate, signed=True), WIDTH - 2, y + 4, "end"))
        parts.append("</g>")
    parts.append(_text("points", (left + right) / 2, bottom + 32, "mid muted"))
    return _svg(parts, bottom + 38, title, description)


def scatter(
    x: np.ndarray, y: np.ndarray, human: np.ndarray, names: tuple[str, str], title: str, told: str
) -> str:
    """Draw points coloured by human scores in `CLASSES` classes, from low to high."""
    left, right, top, bottom = 50, WIDTH - 14, 22, 232
    across, up = _Scale(*_limits(x), left, right), _Scale(*_limits(y), bottom, top)
    parts = [_axis_x(across, top, bottom, 1), _axis_y(up, left, right)]
    if up.low < 0 < up.high:
        parts.append(_line("zero", left, up(0), right, up(0)))
    classes = classes_of(human)
    for number in range(CLASSES):
        chosen = np.flatnonzero(classes == number)
        path = "".join(
            f"M{across(a):.1f} {up(b):.1f}h0"
            for a, b in zip(x[chosen].tolist(), y[chosen].tolist(), strict=True)
        )
        parts.append(f'<path class="dots h{number}" d="{path}"/>')
    parts.append(_text(names[1], 2, 12, "muted"))
    parts.append(_text(names[0], (left + right) / 2, bottom + 32, "mid muted"))
    return _svg(parts, bottom + 38, title, told)


def classes_of(human: np.ndarray) -> np.ndarray:
    """Return the class of each human score, from 0 to CLASSES - 1, of equal widths."""
    edges = np.linspace(human.min(), human.max(), CLASSES + 1)[1:-1]
    return np.searchsorted(edges, human, side="right")


def band(low: np.ndarray, middle: np.ndarray, high: np.ndarray, title: str, told: str) -> str:
    """Draw a curve over ranks between two others."""
    left, right, top, bottom = 50, WIDTH - 14, 8, 180
    across = _Scale(0, 100, left, right)
    up = _Scale(*_limits(np.concatenate([low, high])), bottom, top)
    at = np.linspace(0, 100, len(middle)).tolist()

    def curve(values: Sequence[float], places: Sequence[float]) -> str:
        return " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(places, values, strict=True))

    outline = f"{curve(low.tolist(), at)} {curve(high[::-1].tolist(), at[::-1])}"
    parts = [_axis_x(across, top, bottom, 1), _axis_y(up, left, right)]
    parts.append(f'<polygon class="band" points="{outline}"/>')
    parts.append(f'<polyline class="curve" points="{curve(middle.tolist(), at)}"/>')
    label = "rank of the component, smallest to largest, %"
    parts.append(_text(label, (left + right) / 2, bottom + 32, "mid muted"))
    return _svg(parts, bottom + 38, title, told)


class _Scale:
    """A linear scale from values to places."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self.low, self.high, self.start, self.stop = low, high, start, stop

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.stop - self.start)

    def ticks(self, factor: float) -> list[tuple[float, str]]:
        """Return places of round values, with the values times a factor as text."""
        low, high = self.low * factor, self.high * factor
        rough = (high - low) / 6 or 1
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        values = [step * i for i in range(math.ceil(low / step - 1e-9), int(high // step) + 1)]
        return [(self(v / factor), f"{v + 0:.{digits}f}".replace("-", "−")) for v in values]


def _limits(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = 0.03 * (high - low) or 0.01
    return low - pad, high + pad


def _axis_x(x: _Scale, top: float, bottom: float, factor: float) -> str:
    ticks = x.ticks(factor)
    lines = "".join(_line("grid", at, top, at, bottom) for at, _ in ticks)
    return lines + "".join(_text(text, at, bottom + 15, "mid muted") for at, text in ticks)


def _axis_y(y: _Scale, left: float, right: float) -> str:
    ticks = y.ticks(1)
    lines = "".join(_line("grid", left, at, right, at) for at, _ in ticks)
    return lines + "".join(_text(text, left - 6, at + 4, "end muted") for at, text in ticks)


def _told(row: Row) -> str:
    return f" ({interval(row.low, row.high, signed=True)})" if math.isfinite(row.low) else ""


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{name}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _text(text: str, x: float, y: float, name: str) -> str:
    return f'<text class="{name}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(parts: list[str], height: float, title: str, description: str) -> str:
    label = escape(f"{title}. {description}")
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )

"""What a comparison looks like on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recos.evaluate.report.words import conclusions, counts, interval, mean_gain, p_text, points

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from recos.evaluate.results import Comparison


def show(comparison: Comparison, console: Console) -> None:
    """Print the scores, the gains and what follows from them."""
    from rich.text import Text  # noqa: PLC0415 - an extra

    parts = comparison.by_measure()
    for measure, part in parts.items():
        for encoder in part.encoder_names:
            _show_scores(part, encoder, measure, console)
        title = f", {measure}" if len(parts) > 1 else ""
        console.print(_gains(part, f"gain over {part.baseline}{title}"))
        console.print()
    for text in conclusions(comparison):
        console.print(Text(text))


def _show_scores(comparison: Comparison, encoder: str, measure: str, console: Console) -> None:
    """Print the scores of an encoder: the mean first, then as many tasks as there is room for."""
    from rich.text import Text  # noqa: PLC0415

    columns = {
        task: [comparison.cell(encoder, task, variant).score for variant in comparison.variants]
        for task in comparison.task_names
    }
    if len(columns) > 1:
        columns = {"mean": np.mean(list(columns.values()), axis=0).tolist(), **columns}
    first = max(map(len, [*comparison.variants, f"{measure} × 100"]))
    title = encoder
    while columns:
        grid = _grid(title)
        grid.add_column(f"{measure} × 100", no_wrap=True)
        fitting: list[str] = []
        room = console.width - first - 2
        for name in columns:
            room -= min(max(5, len(name)), 20) + 2
            if room < 0 and fitting:
                break
            fitting.append(name)
        for name in fitting:
            grid.add_column(name, justify="right", min_width=5, max_width=20, overflow="fold")
        shown = [columns.pop(name) for name in fitting]
        for variant, *row in zip(comparison.variants, *shown, strict=True):
            cells = [
                Text(points(x), style="bold" if round(x, 4) == round(max(column), 4) else "")
                for x, column in zip(row, shown, strict=True)
            ]
            grid.add_row(Text(variant), *cells)
        console.print(grid)
        console.print()
        title = f"{encoder}, more tasks"


def _gains(comparison: Comparison, title: str) -> Table:
    from rich.text import Text  # noqa: PLC0415

    grid = _grid(title)
    single = comparison.gains(comparison.baseline).size == 1
    names = ("adjusted p", "significant") if single else ("better", "not significant", "worse")
    for name in ("variant", "points" if single else "mean", "95 % interval", *names):
        grid.add_column(name, justify="left" if name == "variant" else "right")
    for variant in comparison.others:
        mean, low, high = mean_gain(comparison, variant)
        told = interval(low, high, signed=True) if np.isfinite(low) else "–"
        [gain, *more] = [x.gain for x in comparison.cells if x.variant == variant and x.gain]
        numbers = [p_text(gain.adjusted), "yes" if gain.significant else "no"]
        if more:
            numbers = [str(number) for number in counts(comparison, variant)]
        grid.add_row(Text(variant), points(mean, signed=True), told, *numbers)
    return grid


def _grid(title: str) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    return Table(title=Text(title, style="bold"), title_justify="left", box=None)

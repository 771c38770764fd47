"""What a comparison looks like on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recos.evaluate.report.words import conclusions, counts, interval, mean_gain, p_text, points

if TYPE_CHECKING:
    from rich.console import Console

    from recos.evaluate.results import Comparison


def show(comparison: Comparison, console: Console) -> None:
    """Print the scores, the gains and what follows from them."""
    from rich.table import Table  # noqa: PLC0415 - an extra
    from rich.text import Text  # noqa: PLC0415

    for encoder in comparison.encoder_names:
        grid = Table(title=Text(encoder, style="bold"), title_justify="left", box=None)
        grid.add_column("score × 100", no_wrap=True)
        last = ["mean"] if len(comparison.tasks) > 1 else []
        for name in [*comparison.task_names, *last]:
            grid.add_column(name, justify="right", min_width=5)
        table = {
            variant: [
                comparison.cell(encoder, task, variant).score for task in comparison.task_names
            ]
            for variant in comparison.variants
        }
        best = np.round(list(table.values()), 4).max(axis=0)
        for variant, row in table.items():
            cells = [
                Text(points(x), style="bold" if round(x, 4) == top else "")
                for x, top in zip(row, best, strict=True)
            ]
            grid.add_row(Text(variant), *cells, *(points(float(np.mean(row))) for _ in last))
        console.print(grid)
        console.print()
    grid = Table(
        title=Text(f"gain over {comparison.baseline}", style="bold"),
        title_justify="left",
        box=None,
    )
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
    console.print(grid)
    console.print()
    for text in conclusions(comparison):
        console.print(Text(text))

"""What ``recos paper`` prints: the paper's figures beside their recomputed values."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from itertools import groupby

import typer
from rich.console import Console
from rich.table import Table as Grid

from recos.evaluate import published

SOURCE = "Xinbo Ai, Beyond Cosine Similarity, arXiv:2602.05266"
_STYLES = {"reproduced": "green", "off by rounding": "yellow", "contradicted": "bold red"}


def show(as_json: bool) -> None:
    """Print every figure of the paper with its verdict, and what the paper does not report."""
    figures, further = published.figures(), published.further()
    summary = Counter[str](figure.verdict for figure in figures)
    if as_json:
        whole = {
            "source": SOURCE,
            "summary": {"figures": len(figures), **summary},
            "figures": [asdict(figure) for figure in figures],
            "further": {name: test.to_dict() for name, test in further.items()},
        }
        typer.echo(json.dumps(whole, allow_nan=False))
        return
    console = Console(markup=False, highlight=False)
    for place, group in groupby(figures, key=lambda figure: figure.place):
        grid, notes = Grid("what", "printed", "recomputed", "verdict", box=None), {}
        for figure in group:
            style = "" if figure.verdict == "reproduced" else _STYLES[figure.verdict]
            row = (figure.what, figure.printed, figure.recomputed, figure.verdict)
            grid.add_row(*row, style=style)
            if figure.note:
                notes[figure.what] = figure.note
        console.print(place, style="bold")
        console.print(grid)
        for what, note in notes.items():
            console.print(f" {what}: {note}", style="italic")
        console.print()
    grid = Grid("test", "estimate", "interval", "statistic", "p", "d_z", box=None)
    for name, test in further.items():
        interval = f"{test.low:.3f} to {test.high:.3f}"
        sides = " one-sided" if test.detail.get("alternative") == "greater" else ""
        least = "≤ " if test.p == test.detail.get("least_p") else ""  # draws tell no smaller one
        numbers = (
            f"{test.statistic:.4g}",
            f"{least}{test.p:.2g}{sides}",
            f"{test.detail.get('d_z', ''):.3}",
        )
        grid.add_row(name, f"{test.estimate:.3f}", interval, *numbers)
    console.print("What the paper does not report, of recos less cos", style="bold")
    console.print(grid, end="\n\n")
    counts = ", ".join(f"{summary[verdict]} {verdict}" for verdict in _STYLES)
    console.print(f"{SOURCE}: {len(figures)} figures, {counts}")

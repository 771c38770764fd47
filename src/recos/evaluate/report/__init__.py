"""A comparison as files: one page, tables, and the numbers to make them again.

``words`` says what the numbers mean; ``terminal``, ``tables``, ``html`` with ``charts`` show them.
"""

from __future__ import annotations

from pathlib import Path

from recos.evaluate.report.html import page
from recos.evaluate.report.tables import to_csv, to_latex, to_markdown
from recos.evaluate.results import Comparison, write

RESULTS = "results.json"


def write_report(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the comparison in every form, and return the files, the page first."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.html": page(comparison),
        "results.csv": to_csv(comparison),
        "results.md": to_markdown(comparison),
        "results.tex": to_latex(comparison),
    }
    for name, text in texts.items():
        write(folder / name, text)
    comparison.save(folder / RESULTS)
    return [folder / name for name in (*texts, RESULTS)]

"""Results as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io

import numpy as np

from recos.evaluate.report.words import (
    conclusions,
    counts,
    interval,
    mean_gain,
    p_text,
    points,
    several_measures,
    verdict,
)
from recos.evaluate.results import Comparison


def to_csv(comparison: Comparison) -> str:
    """Return one line for each score, with its gain over the baseline."""
    names = list(dict.fromkeys(name for cell in comparison.cells for name in cell.other))
    measures = {task["name"]: task["measure"] for task in comparison.tasks}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        ["encoder", "task", "variant", "measure", "score", "low", "high", "gain", "gain_low",
         "gain_high", "p", "adjusted_p", "significant",
         *(f"{name}{part}" for name in names for part in ("", " low", " high"))]
    )  # fmt: skip
    for cell in comparison.cells:
        gain = cell.gain
        told = [""] * 6 if gain is None else [
            gain.estimate, gain.low, gain.high, gain.p, gain.adjusted, gain.significant
        ]  # fmt: skip
        table.writerow(
            [cell.encoder, cell.task, cell.variant, measures[cell.task], cell.score, cell.low,
             cell.high, *told, *(x for name in names for x in cell.other.get(name, ("",) * 3))]
        )  # fmt: skip
    return text.getvalue()


def to_markdown(comparison: Comparison) -> str:
    """Return the conclusions, the scores and the gains."""
    parts = ["# Which similarity ranks best?", *(f"- {text}" for text in conclusions(comparison))]
    mean = [] if several_measures(comparison) else ["mean"]
    for encoder in comparison.encoder_names:
        rows = [
            [variant, *map(points, row), *(points(float(np.mean(row))) for _ in mean)]
            for variant, row in _rows(comparison, encoder)
        ]
        parts += [f"## {encoder}", _grid(["score × 100", *comparison.task_names, *mean], rows)]
    for measure, part in comparison.by_measure().items():
        rows = []
        for variant in part.others:
            estimate, low, high = mean_gain(part, variant)
            told = interval(low, high, signed=True) if np.isfinite(low) else "–"
            rows.append(
                [variant, points(estimate, signed=True), told, *map(str, counts(part, variant))]
            )
        head = ["variant", "mean gain", "95 % interval", "better", "not significant", "worse"]
        parts += [f"## Gains over {comparison.baseline}, {measure}", _grid(head, rows)]
    rows = [
        [cell.encoder, cell.task, cell.variant, points(cell.gain.estimate, signed=True),
         interval(cell.gain.low, cell.gain.high, signed=True), p_text(cell.gain.adjusted)]
        for cell in comparison.cells if cell.gain is not None
    ]  # fmt: skip
    head = ["encoder", "task", "variant", "gain", "95 % interval", "adjusted p"]
    return "\n\n".join([*parts, _grid(head, rows)]) + "\n"


def _grid(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(x.replace('|', '/') for x in line)} |" for line in lines)


def to_latex(comparison: Comparison) -> str:
    """Return a table in the form of the paper's: models, methods, tasks, and the best in bold."""
    tasks = comparison.task_names
    mixed = several_measures(comparison)
    head = ["Model", "Method", *map(_tex, tasks), *([] if mixed else ["Avg."])]
    groups = []
    for encoder in comparison.encoder_names:
        rows = {
            variant: row if mixed else [*row, float(np.mean(row))]
            for variant, row in _rows(comparison, encoder)
        }
        best = np.round(list(rows.values()), 4).max(axis=0)
        lines = []
        for variant, row in rows.items():
            cells = [
                f"\\textbf{{{100 * x:.2f}}}" if round(x, 4) == top else f"{100 * x:.2f}"
                for x, top in zip(row, best, strict=True)
            ]
            lines.append(" & ".join([_tex(encoder), _tex(variant), *cells]) + r" \\")
        groups.append("\n".join(lines))
    body = "\n\\addlinespace\n".join(groups)
    caption = " ".join(
        f"{measure}: {verdict(part, variant)}" if mixed else verdict(part, variant)
        for measure, part in comparison.by_measure().items()
        for variant in part.others
    )
    return (
        "% needs \\usepackage{booktabs}\n\\begin{table*}\n\\centering\n\\small\n"
        f"\\caption{{Scores times 100. {_tex(caption)}}}\n"
        f"\\begin{{tabular}}{{r l {' '.join('c' * (len(head) - 2))}}}\n\\toprule\n"
        f"{' & '.join(head)} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        "\\end{table*}\n"
    )


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _rows(comparison: Comparison, encoder: str) -> list[tuple[str, list[float]]]:
    return [
        (variant, [comparison.cell(encoder, task, variant).score for task in comparison.task_names])
        for variant in comparison.variants
    ]

"""Write the table of similarities into the README and the first page, from the registry."""

import re
from pathlib import Path

import recos

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")
MARKS = re.compile(r"(<!-- metrics: begin -->\n).*?(<!-- metrics: end -->)", re.DOTALL)


def table() -> str:
    """Return the registry as a Markdown table."""
    rows = ["| similarity | is | is 1 when | range |", "| --- | --- | --- | --- |"]
    for metric in recos.METRICS.values():
        low = {-1.0: "−1", -1 / 3: "−⅓"}[metric.range[0]]
        formula = metric.formula.replace("|", r"\|")
        rows.append(f"| `{metric.name}` | {formula} | {metric.one_when} | {low} to 1 |")
    return "\n".join(rows) + "\n"


def written(page: Path) -> str:
    """Return the text of a page with the table as it should be."""
    text = page.read_text(encoding="utf-8")
    return MARKS.sub(lambda marks: marks[1] + table() + marks[2], text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page), encoding="utf-8")

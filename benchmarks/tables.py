"""Write the tables of the README and docs/benchmarks.md from the JSON in results/."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MARKS = re.compile(r"(<!-- benchmarks: begin -->\n).*?(<!-- benchmarks: end -->)", re.DOTALL)


def main() -> None:
    """Replace what stands between the marks in both files."""
    tables = {"README.md": readme(), "docs/benchmarks.md": documentation()}
    for name, text in tables.items():
        page = ROOT / name
        old = page.read_text(encoding="utf-8")
        page.write_text(MARKS.sub(lambda m, t=text: m[1] + t + m[2], old), encoding="utf-8")


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def readme() -> str:
    """Return the short table."""
    speed, environment = load("speed")["results"], load("speed")["environment"]
    worst = worst_errors()
    rows = [
        ("all pairs, 4000 × 4000 of 768 numbers", speed["pairwise"]["recos"], "`X @ Y.T`"),
        ('the same, `metric="cos"`', speed["cosine"]["recos"], "`X @ Y.T`"),
        (
            "aligned rows, 100,000 of 768 numbers",
            speed["paired"]["recos over sorting both"],
            "`np.sort` of both",
        ),
        (
            "pairs over 0.9 among 100,000 rows of 384",
            speed["above"]["recos over product"],
            "the blocked product alone",
        ),
    ]
    text = table(
        ("exact recos of", "takes", "times as long as"),
        [(what, f"{number:.2f}", base) for what, number, base in rows],
    )
    errors = ", ".join(f"{worst[dtype]:.0e} for {dtype}" for dtype in ("float64", "float32"))
    where = f"{environment['cpu']}, {environment['cpus']} threads, float32"
    return (
        f"{text}\nMedians of interleaved runs on {where}. The largest error against exact\n"
        "rational arithmetic, on random, heavy-tailed, shifted and constant rows of up to 4096\n"
        f"numbers, is {errors}. [docs/benchmarks.md](docs/benchmarks.md) has the rest;\n"
        "`make bench` measures it all again.\n"
    )


def worst_errors() -> dict[str, float]:
    """Return the largest error for each dtype, over all functions and data."""
    worst: dict[str, float] = {}
    for row in load("precision")["results"]:
        errors = [row[name] for name in ("paired", "paired in blocks", "pairwise")]
        worst[row["dtype"]] = max(worst.get(row["dtype"], 0.0), *errors)
    return worst


def documentation() -> str:
    """Return all tables, each with what it shows."""
    files = {name: load(name) for name in ("speed", "precision", "memory", "startup")}
    environment = files["speed"]["environment"]
    versions = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    speed, startup = files["speed"]["results"], files["startup"]["results"]
    sections = [
        f"Measured on {environment['cpu']} with {environment['cpus']} threads, Python "
        f"{environment['python']}, {versions}. Machines like it are shared and noisy, so\n"
        "every figure is a ratio: the median over interleaved runs in one process. `make bench`\n"
        "measures them again; the files are in `benchmarks/results/`.\n",
        "## All pairs\n\n4000 × 4000 pairs of 768 float32 numbers, against `X @ Y.T`. Exact recos "
        "takes two such products\nat least. The paper's code is timed on eight rows and scaled.\n\n"
        + numbers(speed["pairwise"], "times `X @ Y.T`"),
        "## Cosine of all pairs\n\nThe same shapes.\n\n"
        + numbers(speed["cosine"], "times `X @ Y.T`"),
        "## Aligned rows\n\n100,000 rows of 768 float32 numbers, against `np.sort` of both inputs "
        "on one thread, and the paper's\nfunction in a loop (timed on 2000 rows and scaled).\n\n"
        + numbers(speed["paired"] | speed["torch"], "ratio"),
        "## Pairs over a threshold\n\nThe pairs over 0.9 among 100,000 rows of 384 float32 "
        "numbers, of which 100 are near copies of others,\nagainst the blocked matrix product "
        "alone.\n\n" + numbers(speed["above"], "ratio, or count"),
        "## Error\n\nThe largest difference from exact rational arithmetic, over widths from 2 to "
        "4096.\n\n" + errors(files["precision"]["results"]),
        "## Memory\n\nThe peak beside the inputs, as a share of the budget.\n\n"
        + table(
            ("function", "budget", "peak, MiB", "share of the budget"),
            [
                (
                    f"`{row['function']}`",
                    row["budget"],
                    f"{row['peak MiB']:.1f}",
                    f"{row['share']:.2f}",
                )
                for row in files["memory"]["results"]
            ],
        ),
        f"## Start-up\n\n`import recos` takes {startup['import over numpy']:.2f} times as long as "
        "`import numpy`, as its parts are loaded\non first use; with a first similarity, both "
        f"take {startup['first call over numpy']:.2f} times as long.\n",
    ]
    if (RESULTS / "gpu.json").exists():
        sections.append(gpu())
    return "\n" + "\n".join(sections)


def gpu() -> str:
    """Return what was measured on a GPU."""
    results = load("gpu")
    return (
        f"## On a GPU\n\n{results['environment']['gpu']}, milliseconds.\n\n"
        + table(
            ("what", "ms"), [(what, f"{ms:.2f}") for what, ms in results["results"]["ms"].items()]
        )
        + "\nThe largest difference from NumPy's float64 result:\n\n"
        + table(
            ("arrays", "error"),
            [(kind, f"{error:.0e}") for kind, error in results["results"]["error"].items()],
        )
    )


def numbers(values: dict[str, float], unit: str) -> str:
    rows = [(name, f"{value:,.2f}".removesuffix(".00")) for name, value in values.items()]
    return table(("what", unit), rows)


def errors(rows: list[dict]) -> str:
    names = ("paired", "paired in blocks", "pairwise")
    cells = [(row["dtype"], row["data"], *(f"{row[name]:.0e}" for name in names)) for row in rows]
    return table(("dtype", "data", *names), cells)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()

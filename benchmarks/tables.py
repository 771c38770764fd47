"""Write the tables of the README and the documentation from the JSON in results/."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MARKS = r"(<!-- {}: begin -->\n).*?(<!-- {}: end -->)"


def main() -> None:
    """Replace what stands between the marks in these files."""
    write("README.md", "benchmarks", readme())
    write("docs/benchmarks.md", "benchmarks", documentation())
    write("README.md", "compare", compared())
    write("docs/compare.md", "compare", compared_sets())
    write("docs/engines.md", "graphs", engines())
    write("docs/engines.md", "proposed", proposed())
    write("docs/diagnose.md", "advice", advice())


def write(name: str, mark: str, text: str) -> None:
    """Replace what stands between two marks."""
    page = ROOT / name
    marks = re.compile(MARKS.replace("{}", mark), re.DOTALL)
    old = page.read_text(encoding="utf-8")
    page.write_text(marks.sub(lambda found: found[1] + text + found[2], old), encoding="utf-8")


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def advice() -> str:
    """Return what advice expected of each change, and what happened, by encoder."""
    results = load("advice")["results"]
    changes = ("recos", "center+cos", "removetop+cos", "standardize+cos", "whiten+cos")
    parts, titles = [], {"first": "Rules were made while looking at these", "later": "Made later"}
    titles["last"] = "Made last, after three rules had changed for those above"
    titles["newest"] = "Made since, after which ranges were widened"
    for made, title in titles.items():
        rows, inside, total = [], 0, 0
        for name, result in results.items():
            if result["made"] != made:
                continue
            cells = []
            for change in changes:
                said, gain = result["said"]["expected"][change], result["gains"][change]
                within = said["low"] <= gain <= said["high"]
                inside, total = inside + within, total + 1
                text = (
                    f"{said['points']:+.1f} ({said['low']:+.1f}…{said['high']:+.1f}): {gain:+.2f}"
                )
                cells.append(text if within else f"**{text}**")
            rows.append((name, f"{result['cos']:.1f}", *cells))
        head = ("encoder", "cos", *changes)
        parts.append(f"### {title}\n\n{inside} of {total} within.\n\n" + table(head, rows))
    return "\n".join(parts)


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
        (
            "the 10 best of 200,000 rows of 768, for 1000 queries",
            load("search")["results"]["exact"]["recos over FAISS cosine"],
            "FAISS's exact cosine search",
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
    sections.append(search())
    if (RESULTS / "gpu.json").exists():
        sections.append(gpu())
    return "\n" + "\n".join(sections)


def search() -> str:
    """Return what exact search takes, and on which data."""
    results = load("search")["results"]
    sets = results["sets"]
    head = ("set", "metric", "rows scored, median", "rows scored, most", "results that differ")
    rows = [
        (
            name,
            metric,
            *(f"{found[f'{metric}: {what}']:g}" for what in ("scored, median", "scored, most")),
            f"{found[f'{metric}: queries that differ']} of 50",
        )
        for name, found in sets.items()
        for metric in ("recos", "cos", "decos", "tanimoto")
    ]
    parts = [
        "## Exact search\n\n1000 queries for the 10 best of 200,000 rows of 768 float32 numbers, "
        "against FAISS's `IndexFlatIP`,\nwhich does the cosine only, and the blocked product. "
        "NumKong is installed.\n",
        numbers(results["exact"], "ratio"),
        "One query, the same rows:\n",
        numbers(results["one"], "ratio"),
        "1000 queries among a million rows of 384 numbers on disk, against the same in memory. The "
        "peak is\nbeside the pages of the files; the budget is 256 MiB.\n",
        numbers(results["mapped"], "ratio"),
        "Making an index of 200,000 rows, against `np.sort` of them on one thread; and what a "
        "first search\ntakes more than later ones, most of which is Numba's own start.\n",
        numbers(results["build"] | results["start"], "ratio, or number"),
        "Rows scored exactly for the 10 best of 100,000 rows, 500 queries, and whether 50 of them "
        "have another\nresult by scoring everything in float64.\n",
        table(head, rows),
        "Against FAISS on the same sets:\n",
        numbers({name: found["recos over FAISS cosine"] for name, found in sets.items()}, "ratio"),
    ]
    return "\n".join(parts)


def engines() -> str:
    """Return the queries per second of engines with folded vectors over those for the cosine."""
    results = load("candidates")["results"]["graphs"]
    rows = [
        (
            name,
            *(
                f"{found[f'{engine} recos']['queries per second over cos']:.2f}"
                for engine in ("faiss", "usearch")
            ),
        )
        for name, found in results.items()
    ]
    return table(("vectors", "faiss", "usearch"), rows)


def compared() -> str:
    """Return the mean scores of a few variants, and in how many sets recos differs from cos."""
    results = load("compare")["results"]
    names = ("cos", "recos", "center+cos", "whiten+cos")
    rows = []
    for encoder, scores in results["scores"].items():
        gains = results["gains"][encoder]["recos"]
        better, worse = (
            sum(g["significant"] and sign * g["estimate"] > 0 for g in gains) for sign in (1, -1)
        )
        mean = 100 * sum(g["estimate"] for g in gains) / len(gains)
        points = f"{mean:+.2f}".replace("-0.00", "0.00")
        told = f"{points}; significantly better on {better} sets, worse on {worse}"
        means = (f"{100 * sum(scores[name]) / len(gains):.2f}" for name in names)
        rows.append((encoder, *means, told))
    return table(("encoder", *(f"`{name}`" for name in names), "recos against cos"), rows)


def compared_sets() -> str:
    """Return all scores of the comparison, and the gains of recos."""
    results = load("compare")["results"]
    corpus, scoring, parts = results["corpus"], results["scoring"], []
    for encoder, scores in results["scores"].items():
        every = results["gains"][encoder]
        rows = []
        for name, row in scores.items():
            stars = [" *" if g["significant"] else "" for g in every[name]] if name in every else ()
            told = (
                f"{100 * x:.2f}{star}"
                for x, star in zip(row, stars or [""] * len(row), strict=True)
            )
            rows.append((f"`{name}`", *told, f"{100 * sum(row) / len(row):.2f}"))
        gains = every["recos"]
        rows.append((
            "recos − cos",
            *(f"{100 * g['estimate']:+.2f}{' *' if g['significant'] else ''}" for g in gains), "",
        ))  # fmt: skip
        parts.append(table((encoder, *results["tasks"], "mean"), rows))
    seconds, over = scoring["seconds, 7 sets and 3 similarities"], scoring["over the paper's loop"]
    return (
        "Spearman × 100, all pairs of a set in one correlation; * marks a score that differs "
        "significantly\nfrom that of `cos`; means are not tested. The transforms learnt from "
        f"{corpus['name']}\nthat are in no task "
        f"({corpus['texts']:,} texts).\n\n" + "\n".join(parts) + "\nWith the embeddings of "
        f"all-MiniLM-L6-v2 ready, the scores of all {scoring['pairs']:,} pairs by `decos`,\n`cos` "
        f"and `recos` take {seconds:.2f} seconds on two threads, {over:.2f} times as long as the "
        "paper's loop\nover pairs.\n"
    )


def proposed() -> str:
    """Return which share of the best an exact engine proposes."""
    results = load("candidates")["results"]["proposed"]
    head = next(iter(results.values()))
    rows = [
        (name, *(f"{share:.3f}" for share in found.values())) for name, found in results.items()
    ]
    return table(("vectors", *head), rows)


def gpu() -> str:
    """Return what was measured on a GPU."""
    results = load("gpu")
    bars = [
        (
            each["what"],
            f"{each['ms']:.2f}",
            f"{each['bar']:.2f}" if "bar" in each else "",
            f"{each['error']:.0e}" if "error" in each else "",
        )
        for each in results["results"]["bars"]
    ]
    return (
        f"## On a GPU\n\n{results['environment']['gpu']}, milliseconds, beside what we aim at; the "
        "largest difference from float64.\n\n"
        + table(("what", "ms", "aim", "error"), bars)
        + "\nFor comparison:\n\n"
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

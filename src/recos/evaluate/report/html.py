"""One HTML file that holds the whole report: no script, nothing fetched, readable anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from recos.evaluate.report import charts
from recos.evaluate.report.words import (
    conclusions,
    direction,
    interval,
    mean_gain,
    p_text,
    points,
    several_measures,
    verdict,
)
from recos.evaluate.results import Cell, Comparison

# Tests that have a name of others.
_SEVERAL = {"per_model", "per_dataset", "leave_one_model_out", "leave_one_dataset_out"}
# What a test estimates, if not the mean gain, and what its statistic is called, if not t.
_OF = {
    "shapiro": "are gains normal?",
    "wilcoxon": "pseudo-median of gains",
    "sign": "share of settings with a gain, from 0 to 1",
    "mixed_model": "effect of the variant",
}
_NAMES = {"as_checked": "the copy of the documentation"}
_LETTERS = {"shapiro": "W", "wilcoxon": "V", "sign": "gains", "cluster_bootstrap": ""}
SECTIONS = {
    "gains": "Gains",
    "scores": "Scores",
    "statistics": "Statistics across settings",
    "points": "Pairs",
    "embeddings": "The embeddings",
    "method": "Method",
}


def page(comparison: Comparison) -> str:
    """Return the report as HTML."""
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    bodies = {
        "gains": _gains(comparison),
        "scores": _scores(comparison),
        "statistics": _statistics(comparison),
        "points": _pairs(comparison),
        "embeddings": _embeddings(comparison),
        "method": _method(comparison),
    }
    shown = {name: body for name, body in bodies.items() if body}
    links = "".join(f'<li><a href="#{name}">{SECTIONS[name]}</a></li>' for name in shown)
    sections = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{SECTIONS[name]}</h2>{body}</section>'
        for name, body in shown.items()
    )
    encoders, tasks = comparison.encoder_names, comparison.task_names
    about = f"{_listed(encoders)} on {_listed(tasks)}, {comparison.made.get('date', '')}"
    said = "".join(f"<p>{escape(text)}</p>" for text in conclusions(comparison))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        '<link rel="icon" href="data:,">'
        f"<title>recos compare: {escape(_listed(encoders))}</title><style>{style}</style></head>"
        '<body><a class="skip" href="#main">Skip to the results</a>'
        "<header><h1>Which similarity ranks best?</h1>"
        f'<p class="muted">{escape(about)}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f'<main id="main"><div class="verdict">{said}</div>{sections}</main></body></html>\n'
    )


# --- Scores and gains ----------------------------------------------------------------------------


def _scores(comparison: Comparison) -> str:
    measures = {task["name"]: task["measure"] for task in comparison.tasks}
    head = ["variant", *_columns(comparison)]
    groups = []
    for encoder in comparison.encoder_names:
        table: list[list[Cell | float]] = []
        for variant in comparison.variants:
            cells = [comparison.cell(encoder, task, variant) for task in comparison.task_names]
            mean = [float(np.mean([cell.score for cell in cells]))] if "mean" in head else []
            table.append([*cells, *mean])
        numbers = np.round(
            [[x.score if isinstance(x, Cell) else x for x in row] for row in table], 4
        )
        tops = numbers == numbers.max(axis=0)
        rows = [
            [_th(variant), *(_score(x, best) for x, best in zip(row, top, strict=True))]
            for variant, row, top in zip(comparison.variants, table, tops.tolist(), strict=True)
        ]
        groups.append((encoder, rows))
    what = sorted(set(measures.values()))
    told = f"{_listed(what)}, times 100. The best of each column and encoder is bold."
    if several_measures(comparison):
        told += " There is no mean over different measures: " + _listed(
            [f"{name} is scored by {measure}" for name, measure in measures.items()], most=20
        )
    return _table(told, head, groups) + _details("Intervals and further measures", _all(comparison))


def _score(x: Cell | float, best: bool) -> str:
    kind = ' class="best"' if best else ""
    if not isinstance(x, Cell):
        return f"<td{kind}>{points(x)}</td>"
    return f'<td{kind} title="{interval(x.low, x.high)}">{points(x.score)}</td>'


def _columns(comparison: Comparison) -> list[str]:
    """Return the names of the columns: the tasks, and the mean of several of one measure."""
    names = comparison.task_names
    return [*names, "mean"] if len(names) > 1 and not several_measures(comparison) else names


def _all(comparison: Comparison) -> str:
    names = list(dict.fromkeys(name for cell in comparison.cells for name in cell.other))
    head = ["variant", "task", "score", "95 % interval", "gain", "95 % interval of the gain", "p"]
    head += ["adjusted p", *names]
    groups = []
    for encoder in comparison.encoder_names:
        rows = []
        for cell in (cell for cell in comparison.cells if cell.encoder == encoder):
            gain = cell.gain
            told = ["", "", "", ""]
            if gain is not None:
                told = [
                    points(gain.estimate, signed=True),
                    interval(gain.low, gain.high, signed=True),
                    p_text(gain.p),
                    p_text(gain.adjusted),
                ]
            others = [points(cell.other[name][0]) if name in cell.other else "" for name in names]
            texts = [cell.task, points(cell.score), interval(cell.low, cell.high), *told, *others]
            rows.append([_th(cell.variant), *map(_td, texts)])
        groups.append((encoder, rows))
    return _table("Every score, times 100", head, groups)


def _gains(comparison: Comparison) -> str:
    settings = len(comparison.encoders) * len(comparison.tasks)
    told = (
        f"Points against {comparison.baseline}. A filled mark is a significant gain (blue) or loss "
        "(orange): the 95 % interval holds no 0, and p is under 0.05 after adjustment for all "
        "gains of this report (Benjamini-Hochberg)."
    )
    parts = comparison.by_measure()
    figures = [
        _overview(part, f"All variants, {measure}" if len(parts) > 1 else "All variants")
        for measure, part in parts.items()
    ]
    if settings > 1:
        told += (
            " A mean of settings is filled where its interval, which takes encoders and tasks as "
            "draws from others, holds no 0; fewer than three tasks, or two encoders, give none, "
            "and it is filled where settings that are significant agree."
        )
        figures += [_per_setting(comparison, variant) for variant in comparison.others]
    note = " Each chart has a scale of its own." if settings > 1 else ""
    return f'<p>{told}{note}</p><div class="cards">{"".join(figures)}</div>{_heat(comparison)}'


def _overview(comparison: Comparison, title: str) -> str:
    """Return the chart of the mean gain of every variant."""
    settings = len(comparison.encoders) * len(comparison.tasks)
    where = "in this setting" if settings == 1 else f"mean of {settings} settings"
    rows = [
        charts.Row(name, *mean_gain(comparison, name), direction(comparison, name) != 0)
        for name in comparison.others
    ]
    told = "; ".join(verdict(comparison, name) for name in comparison.others)
    chart = charts.forest(rows, f"Gain over {comparison.baseline}, {where}", told)
    return _figure(title, where, chart)


def _per_setting(comparison: Comparison, variant: str) -> str:
    rows = []
    for encoder in comparison.encoder_names:
        if len(comparison.encoders) > 1:
            rows.append(charts.Row(encoder))
        for task in comparison.task_names:
            gain = comparison.cell(encoder, task, variant).gain
            assert gain is not None
            rows.append(charts.Row(task, gain.estimate, gain.low, gain.high, gain.significant))
    title = f"Gain of {variant} over {comparison.baseline} in each setting"
    chart = charts.forest(rows, title, verdict(comparison, variant))
    return _figure(variant, f"over {comparison.baseline}, in points", chart)


def _heat(comparison: Comparison) -> str:
    """Return a table of gains, encoders by tasks, with coloured cells."""
    gains = {variant: comparison.gains(variant) for variant in comparison.others}
    most = max((float(np.abs(found).max()) for found in gains.values()), default=0.0) or 1.0
    single = len(comparison.encoders) == 1
    head = ["variant" if single else "encoder", *_columns(comparison)]
    groups: list[tuple[str, list[list[str]]]] = []
    for variant, found in gains.items():
        rows = [
            [
                _th(variant if single else encoder),
                *(_warm(x, most) for x in [*row, row.mean()][: len(head) - 1]),
            ]
            for encoder, row in zip(comparison.encoder_names, found, strict=True)
        ]
        groups.append(("" if single else variant, rows))
    told = f"Gain over {comparison.baseline} in points: blue is better, orange worse"
    return _table(told, head, groups)


def _warm(x: float, most: float) -> str:
    # The root lets small gains be seen beside large ones; text stays readable on the darkest.
    much = 0.5 * (abs(x) / most) ** 0.5
    kind = "up" if x > 0 else "down"
    return f'<td class="{kind}" style="--much:{much:.2f}">{points(x, signed=True)}</td>'


# --- Statistics, pairs, embeddings ---------------------------------------------------------------


def _statistics(comparison: Comparison) -> str:
    if not any(comparison.across.values()):
        return ""
    head = ["test", "p", "estimate", "95 % interval", "of", "statistic", "n", "assumes"]
    parts = [
        "<p>Tests over all settings. Estimates are in points where nothing else is said; these "
        "p-values are not adjusted for the number of variants and tests.</p>"
    ]
    for variant, tests in comparison.across.items():
        rows = [_test(name, test) for name, test in _different(tests).items()]
        told = f"{variant} against {comparison.baseline}"
        opened = len(comparison.across) == 1 or variant == "recos"
        parts.append(_details(told, _table(told, head, [("", rows)], words={4, 7}), opened=opened))
    return "".join(parts)


def _different(tests: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return tests without those that repeat another, as those of one encoder do."""
    found: dict[Any, str] = {}
    for name, test in tests.items():
        told = [test.get(part) for part in ("statistic", "p", "low")]
        key = tuple(None if x is None else float(f"{x:.6g}") for x in told)
        found.setdefault(name if "one_out" in name else key, name)
    return {name: tests[name] for name in found.values()}


def _test(name: str, test: dict[str, Any]) -> list[str]:
    def number(value: float | None) -> str:
        return "–" if value is None else _fact(float(value))

    low, high = test.get("low"), test.get("high")
    bounds = "–" if low is None and high is None else f"{number(low)} to {number(high)}"
    p, statistic = test.get("p"), number(test.get("statistic"))
    title = str(test["name"])
    if name in _SEVERAL:
        words = name.replace("_", " ")
        title = words if name.startswith("leave_one") else f"{title}, {words}"
    of, letter = _OF.get(name, "mean gain"), _LETTERS.get(name, "t")
    if name.startswith("leave_one"):  # a range of means, and the least sure of its tests
        of, bounds = f"mean gains without one: from {bounds}; the largest p and its t", "–"
    return [
        _th(title),
        _td("–" if p is None else p_text(p)),
        _td(number(test.get("estimate"))),
        _td(bounds),
        f'<td class="words">{escape(of)}</td>',
        _td(f"{letter} = {statistic}" if letter else "–"),
        _td(str(test.get("n", ""))),
        f'<td class="words">{escape(str(test.get("assumes", "")))}</td>',
    ]


def _pairs(comparison: Comparison) -> str:
    if not comparison.sample:
        return ""
    key = "".join(
        f'<li><span class="h{i}"></span>{text}</li>'
        for i, text in enumerate(["lowest human scores", "low", "middle", "high", "highest"])
    )
    groups: list[str] = []
    for encoder in comparison.encoder_names:
        figures = [_plot(sample) for sample in comparison.sample if sample["encoder"] == encoder]
        cards = f'<div class="cards">{"".join(figures)}</div>'
        single = len(comparison.encoders) == 1
        groups.append(cards if single else _details(encoder, cards, opened=not groups))
    return (
        "<p>A sample of the pairs, each a point, coloured by the human score. Where the colours "
        "run along the curve alone, both similarities order the pairs alike; where they change "
        f'across it, one knows more.</p><ul class="key">{key}</ul>{"".join(groups)}'
    )


def _plot(sample: dict[str, Any]) -> str:
    """Return both similarities of the pairs, and what one adds to the other."""
    x, y, human = (np.array(sample[name]) for name in ("baseline", "other", "human"))
    (a, b), where = sample["names"], f"{sample['encoder']}, {sample['task']}"
    moved = f"{b} − {a}"
    told = f"{len(x)} pairs, the two correlated by {np.corrcoef(x, y)[0, 1]:.4f} (Pearson)"
    most = f"The difference is {np.median(y - x):.4f} in the median"
    both = charts.scatter(x, y, human, (a, b), f"{b} against {a}: {where}", told)
    apart = charts.scatter(x, y - x, human, (a, moved), f"{moved} against {a}: {where}", most)
    classes = charts.classes_of(human)
    rows = [
        [_th(f"{human[chosen].min():g} to {human[chosen].max():g}"), _td(str(chosen.sum())),
         _td(_fact(float(x[chosen].mean()))), _td(_fact(float(y[chosen].mean())))]
        for chosen in (classes == number for number in range(charts.CLASSES)) if chosen.any()
    ]  # fmt: skip
    means = _table(f"Means by human score: {where}", ["human score", "pairs", a, b], [("", rows)])
    return _figure(where, told, both + apart + _details("As a table", means))


def _embeddings(comparison: Comparison) -> str:
    parts = []
    for encoder in comparison.encoders:
        parts.append(f"<h3>{escape(str(encoder['name']))}</h3>")
        diagnosis = encoder.get("diagnosis") or {}
        if advice := diagnosis.get("advice"):
            parts.append(f"<p>{escape(str(advice))}</p>")
        cards = [_profiles(str(encoder["name"]), encoder["profile"])]
        expected = diagnosis.get("expected") or {}
        facts = dict(diagnosis.get("summary") or {})
        if odd := diagnosis.get("odd"):
            facts["odd rows"] = ", ".join(f"{count} {kind}" for kind, count in odd.items())
        for title, found in (("Diagnosis", facts), ("Encoder", encoder.get("facts") or {})):
            cards.append(f'<div class="card"><h4>{title}</h4>{_facts(found)}</div>')
        parts.append(f'<div class="cards">{"".join(cards)}</div>')
        rows = [
            [_th(name), _td(_number(found["points"], signed=True)),
             _td(f"{_number(found['low'], signed=True)} to {_number(found['high'], signed=True)}"),
             _td(found["verdict"]), _td(_measured(comparison, str(encoder["name"]), name))]
            for name, found in expected.items()
        ]  # fmt: skip
        if rows:
            head = ["variant", "expected", "likely range", "expected to be", "measured here"]
            told = (
                "What the diagnosis expects from the embeddings alone, in points against the "
                "cosine, and what was measured, where the baseline is cos"
            )
            parts.append(_table(told, head, [("", rows)]))
            parts.append(_surprises(comparison, str(encoder["name"]), expected))
    return "".join(parts)


def _surprises(comparison: Comparison, encoder: str, expected: dict[str, Any]) -> str:
    """Name what was measured outside the range that the diagnosis expected."""
    apart = [
        f"{name} {points(gain, signed=True)}"
        for name, found in expected.items()
        if (gain := _gain_of(comparison, encoder, name)) is not None
        and not found["low"] - 0.05 <= 100 * gain <= found["high"] + 0.05
    ]
    if not apart:
        return ""
    told = (
        f"Outside the range: {', '.join(apart)}. The ranges hold for most encoders on the seven "
        "STS sets; these rows, these tasks or chance may differ, and what was measured counts."
    )
    return f"<p>{escape(told)}</p>"


def _measured(comparison: Comparison, encoder: str, variant: str) -> str:
    gain = _gain_of(comparison, encoder, variant)
    return "–" if gain is None else points(gain, signed=True)


def _gain_of(comparison: Comparison, encoder: str, variant: str) -> float | None:
    """Return the mean gain over the cosine."""
    if comparison.baseline != "cos" or variant not in comparison.others:
        return None
    comparison = comparison.by_measure().get("Spearman", comparison)  # points are those of it
    place = comparison.encoder_names.index(encoder)
    return float(comparison.gains(variant)[place].mean())


def _number(value: float, *, signed: bool = False) -> str:
    return points(value / 100, signed=signed)


def _profiles(name: str, shape: dict[str, list[float]]) -> str:
    """Return what sorted rows look like."""
    low, middle, high = (np.array(shape[part]) for part in ("low", "middle", "high"))
    told = (
        "Sorted components of unit rows: the median row and the range of 90 % of rows. "
        "recos can differ from the cosine only as far as these profiles differ"
    )
    places = np.linspace(0, len(middle) - 1, min(11, len(middle))).round().astype(int)
    rows = [
        [_th(f"{100 * i / max(1, len(middle) - 1):.0f} %"),
         *(_td(_fact(float(values[i]))) for values in (low, middle, high))]
        for i in places
    ]  # fmt: skip
    table = _table(f"Profiles of {name}", ["rank", "5 %", "median", "95 %"], [("", rows)])
    chart = charts.band(low, middle, high, f"Profiles of {name}", told)
    return _figure("Profiles", told, chart + _details("As a table", table))


# --- Method --------------------------------------------------------------------------------------


def _method(comparison: Comparison) -> str:
    settings, made = comparison.settings, comparison.made
    corpus = settings.get("corpus") or {}
    notes = [
        "Scores are Spearman correlations with the human scores, all pairs of a task in one, where "
        "a task has graded pairs; average precision where pairs are marked alike or not; nDCG@10 "
        "for retrieval. Intervals are bootstraps over pairs or queries, "
        f"{settings.get('resamples')} resamples, seed {settings.get('seed')}.",
        "The gain over the baseline has a bootstrap interval in which both similarities see the "
        "same resampled pairs (BCa for correlations, percentiles for other measures), and the "
        "p-value of a t-test by the influence of each pair on the gain, or of the bootstrap for "
        "other measures. The p-values of these gains, one for each variant, encoder and task, "
        "are adjusted together (Benjamini-Hochberg); those of the tests across settings are not.",
        f"Transforms were fitted on {corpus.get('name', 'no corpus')}"
        + (f", {corpus['texts']} texts; {corpus['left_out']} more occur in the tasks and were "
           "left out." if "texts" in corpus else "."),
        "Settings are not independent: the same sentences meet every encoder. Tests across "
        "settings say what they assume; the two-way t-test, which takes encoders and tasks as "
        "draws from others, claims least.",
    ]  # fmt: skip
    parts = [f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"]
    parts.append('<div class="cards">')
    for task in comparison.tasks:
        facts = {"measure": task["measure"], "texts": task["texts"], "rows": task["rows"]}
        facts |= task.get("facts") or {}
        parts.append(f'<div class="card"><h3>{escape(task["name"])}</h3>{_facts(facts)}</div>')
    parts.append("</div>")
    if command := made.get("command"):
        parts.append(f'<h3>Again</h3><pre tabindex="0">{escape(str(command))}</pre>')
    return "".join(parts) + _details("Versions and settings", _facts(made) + _facts(settings))


# --- Pieces --------------------------------------------------------------------------------------


def _table(
    caption: str,
    head: Sequence[str],
    groups: Iterable[tuple[str, list[list[str]]]],
    words: Iterable[int] = (),
) -> str:
    """Return a table of ready cells, in groups of rows with a heading each."""
    titles = "".join(
        f'<th scope="col"{" class=words" if i in set(words) else ""}>{escape(name)}</th>'
        for i, name in enumerate(head)
    )
    bodies = []
    for name, rows in groups:
        first = f'<th scope="rowgroup" colspan="{len(head)}">{escape(name)}</th>'
        title = f"<tr>{first}</tr>" if name else ""
        lines = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        bodies.append(f"<tbody>{title}{lines}</tbody>")
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table><caption><span>{escape(caption)}</span></caption><thead><tr>{titles}</tr></thead>"
        f"{''.join(bodies)}</table></div>"
    )


def _th(text: str) -> str:
    return f'<th scope="row">{escape(text)}</th>'


def _td(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _figure(title: str, told: str, chart: str) -> str:
    caption = f"<figcaption><strong>{escape(title)}</strong><br>{escape(told)}</figcaption>"
    return f"<figure>{caption}{chart}</figure>"


def _details(title: str, body: str, *, opened: bool = False) -> str:
    return f"<details{' open' * opened}><summary>{escape(title)}</summary>{body}</details>"


def _facts(facts: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(_NAMES.get(name, name.replace('_', ' ')))}</dt>"
        f"<dd>{escape(_fact(value))}</dd>"
        for name, value in facts.items()
        if value not in (None, [], {}, "")
    )
    return f"<dl>{rows}</dl>"


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_fact(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_fact, value))
    if isinstance(value, float):
        return f"{value:.3g}".replace("-", "−") if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if type(value) is int else str(value)


def _listed(names: Sequence[str], most: int = 4) -> str:
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

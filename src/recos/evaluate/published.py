"""The figures of the paper, each one recomputed from its table of 231 scores.

``data/table.csv`` holds the scores as printed, ``data/figures.csv`` what the paper says about them:
where, what, the printed value, and the name of the value in `_values` that it is compared with.
Sums and means are exact, of whole hundredths, so that no tie is broken by rounding.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal

import numpy as np

from recos.evaluate import statistics
from recos.evaluate.statistics import Test

Verdict = Literal["reproduced", "off by rounding", "contradicted"]
Value = Fraction | float | str
Values = dict[str, Any]
Table = dict[tuple[str, str], tuple[Fraction, ...]]  # (model, metric): a score for each data set

DATASETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
METRICS = ("decos", "cos", "recos")
GROUPS = {
    "static": ("Word2Vec", "FastText", "GloVe"),
    "contextualized": ("BERT", "SGPT", "DPR"),
    "universal": ("BGE", "E5", "GTE", "SPECTER", "CLIP-ViT"),
}
MARGINAL = ("Word2Vec", "SGPT", "BGE")

# Bold scores of the printed table; elsewhere the score of recos alone is bold.
BOLD = {
    ("Word2Vec", "STS16"): "cos, recos",
    ("FastText", "STS12"): "cos, recos",
    ("BERT", "STS12"): "decos",
    ("SGPT", "STS16"): "none",
    ("BGE", "STS13"): "decos, cos",
}
_UNMARKED = "equal scores are both bold elsewhere in the table"
_BOLD_NOTES = {
    ("Word2Vec", "STS12"): "decos 53.07 is above recos 52.80",
    ("SGPT", "STS16"): _UNMARKED,
    ("GTE", "SICK-R"): _UNMARKED,
}
EXPERTS = {
    "e1": (1.0, 5.5, 2.0, 4.0),
    "e4": (2.0, 5.5, 1.0, 4.0),
    "e5": (1.225, 6.7375, 2.45, 4.9),
    "e6": (1.0, 8.5, 2.0, 4.0),
}


@dataclass(frozen=True)
class Figure:
    """A number that the paper prints, and the same number computed again.

    ``verdict`` is ``reproduced`` if the recomputed value rounds to the printed one, ``off by
    rounding`` if it then differs by one in the last printed digit, else ``contradicted``.
    """

    place: str
    what: str
    printed: str
    recomputed: str
    verdict: Verdict
    note: str = ""


def figures() -> list[Figure]:
    """Return every number that the paper prints about its experiment, recomputed.

    Returns
    -------
    list of Figure
        In the order of the paper; averages and bold marks of its table of results first.

    Examples
    --------
    >>> from recos.evaluate import published
    >>> [figure.what for figure in published.figures() if figure.verdict == "contradicted"][:1]
    ['Word2Vec, STS12']
    """
    table, printed = scores(), _rows("table.csv")
    values = _values(table)
    found = [
        _compare("Table 1, averages", f"{row['model']}, {row['metric']}", row["avg"],
                 _mean(table[row["model"], row["metric"]]))
        for row in printed
    ]  # fmt: skip
    found += _bold_marks(table)
    for row in _rows("figures.csv"):
        value = values[row["value"]]
        found.append(_compare(row["place"], row["what"], row["printed"], value, row["note"]))
    return found


def further() -> dict[str, Test]:
    """Return what the paper does not report of recos against cos, and should have.

    Returns
    -------
    dict of str to Test
        One-sided t-test and Wilcoxon test of the mean gain of each model (n = 11), the paired
        t-test, whose d_z is the effect size of pairs, the range of the mean gain without each
        model, and the interval for other models and data sets.

    Examples
    --------
    >>> from recos.evaluate import published
    >>> found = published.further()
    >>> found["per model, t-test"].statistic, found["per model, Wilcoxon"].statistic
    (3.25, 66.0)
    """
    gains, models, datasets = _gains(scores())
    d = [float(gain) for gain in gains]
    per_model = list(statistics.means_by(d, models).values())
    return {
        "per model, t-test": statistics.paired_t(per_model, alternative="greater"),
        "per model, Wilcoxon": statistics.wilcoxon(per_model, alternative="greater"),
        "paired t-test": statistics.paired_t(d),
        "leave one model out": statistics.leave_one_out(d, models),
        "cluster bootstrap": statistics.cluster_bootstrap(d, models, datasets),
    }


def scores() -> Table:
    """Return the paper's 231 scores, exactly as printed.

    Returns
    -------
    dict of (str, str) to tuple of Fraction
        The scores of a model by a metric, in the order of `DATASETS`.

    Examples
    --------
    >>> from recos.evaluate import published
    >>> published.scores()["BERT", "recos"][0]
    Fraction(1813, 25)
    """
    return {
        (row["model"], row["metric"]): tuple(Fraction(row[name]) for name in DATASETS)
        for row in _rows("table.csv")
    }


def _rows(name: str) -> list[dict[str, str]]:
    text = files("recos.evaluate").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _compare(place: str, what: str, printed: str, value: Value, note: str = "") -> Figure:
    """Round a value as the printed one is, and say whether they agree."""
    if isinstance(value, str):
        verdict: Verdict = "reproduced" if value == printed else "contradicted"
        return Figure(place, what, printed, value, verdict, note)
    share = printed.endswith("%")
    exact = _decimal(value * 100 if share else value)
    bare = Decimal(printed.strip("<%"))
    if printed.startswith("<"):
        verdict, digits = "reproduced" if exact < bare else "contradicted", 3
    else:
        unit = Decimal((0, (1,), int(bare.as_tuple().exponent)))
        rounded = {exact.quantize(unit, how) for how in (ROUND_HALF_UP, ROUND_HALF_DOWN)}
        verdict = (
            "contradicted" if min(abs(bare - near) for near in rounded) > unit
            else "reproduced" if bare in rounded else "off by rounding"
        )  # fmt: skip
        digits = len(bare.as_tuple().digits) + 3
    return Figure(place, what, printed, _shown(exact, digits) + "%" * share, verdict, note)


def _decimal(value: Fraction | float) -> Decimal:
    if isinstance(value, Fraction):
        return Context(prec=50).divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(float(value))


def _shown(value: Decimal, digits: int) -> str:
    return str(int(value)) if value == int(value) else f"{float(value):.{digits}g}"


def _mean(values: tuple[Fraction, ...] | list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _bold_marks(table: Table) -> Iterator[Figure]:
    """Yield, for each model and column, which scores are bold and which are the best."""
    for model, _ in groupby(model for model, _ in table):
        rows = {metric: (*table[model, metric], _mean(table[model, metric])) for metric in METRICS}
        for i, column in enumerate((*DATASETS, "average")):
            shown = {metric: round(row[i], 2) for metric, row in rows.items()}
            best = [metric for metric in METRICS if shown[metric] == max(shown.values())]
            yield _compare(
                "Table 1, bold marks",
                f"{model}, {column}",
                BOLD.get((model, column), "recos"),
                ", ".join(best),
                _BOLD_NOTES.get((model, column), ""),
            )


def _gains(
    table: Table, metric: str = "recos", baseline: str = "cos"
) -> tuple[list[Fraction], list[str], list[str]]:
    """Return the gain in each setting, its model and its data set."""
    settings = [(model, i) for model, name in table if name == metric for i in range(len(DATASETS))]
    gains = [table[model, metric][i] - table[model, baseline][i] for model, i in settings]
    return gains, [model for model, _ in settings], [DATASETS[i] for _, i in settings]


def _values(table: Table) -> Values:
    """Return all that the paper says, by the names in ``figures.csv``."""
    gains, models, datasets = _gains(table)
    values: Values = {
        "metrics": Fraction(len({metric for _, metric in table})),
        "models": Fraction(len(set(models))),
        "datasets": Fraction(len(DATASETS)),
        "settings": Fraction(len(gains)),
        "observations": Fraction(2 * len(gains)),
        "cos wins": Fraction(sum(gain > 0 for gain in _gains(table, "cos", "decos")[0])),
        "tied models": _most_tied(table),
    }
    for metric in METRICS:
        rows = [score for (_, name), row in table.items() if name == metric for score in row]
        values[f"average {metric}"] = _mean(rows)
    tests, mixed = _tests(gains, datasets), _mixed(table, models, datasets)
    family = {name: tests[f"p {name}"] for name in ("t", "Wilcoxon", "sign")}
    family["method"] = mixed["p method"]
    adjusted = statistics.benjamini_hochberg(list(family.values())).tolist()
    values |= {f"adjusted {name}": p for name, p in zip(family, adjusted, strict=True)}
    values["largest adjusted p"] = max(adjusted)
    return values | _examples() | _by_model(table) | _descriptives(gains) | tests | mixed


def _examples() -> Values:
    import recos  # noqa: PLC0415 - the package itself

    return {
        f"{name}(e1 {other})": float(metric.function(EXPERTS["e1"], EXPERTS[other]))
        for name, metric in recos.METRICS.items()
        for other in ("e4", "e5", "e6")
    }


def _most_tied(table: Table) -> str:
    """Name the two models on which cos and decos are most often equal."""
    gains, models, _ = _gains(table, "cos", "decos")
    tied = [model for gain, model in zip(gains, models, strict=True) if gain == 0]
    return ", ".join(sorted(sorted(set(tied)), key=tied.count, reverse=True)[:2])


def _by_model(table: Table) -> Values:
    """Return the gains of models, and of groups of them."""
    gains, models, datasets = _gains(table)
    known = dict.fromkeys(models)
    mean = {
        name: _mean([gain for gain, model in zip(gains, models, strict=True) if model == name])
        for name in known
    }
    values: Values = {f"gain {name}": gain for name, gain in mean.items()}
    for gain, model, dataset in zip(gains, models, datasets, strict=True):
        values[f"gain {model} {dataset}"] = gain
        values[f"peak {model}"] = max(gain, Fraction(values.get(f"peak {model}", gain)))
    named = {**GROUPS, "universal": GROUPS["universal"][:-1]}  # the text leaves CLIP-ViT out
    sets = {**GROUPS, "universal without CLIP-ViT": named["universal"], "marginal": MARGINAL}
    for name, members in sets.items():
        values[f"least {name}"] = min(mean[model] for model in members)
        values[f"largest {name}"] = max(mean[model] for model in members)
    for key, groups in (("groups", GROUPS), ("groups without CLIP-ViT", named)):
        order = sorted(groups, key=lambda name: _mean([mean[model] for model in groups[name]]))
        values[key] = " < ".join(order)
    values["largest gains"] = ", ".join(sorted(mean, key=mean.__getitem__, reverse=True)[:3])
    return values


def _descriptives(gains: list[Fraction]) -> Values:
    ordered = sorted(gains)
    n = len(gains)

    def quantile(share: Fraction) -> Fraction:  # type 7 of R, exactly
        place = share * (n - 1)
        i = min(int(place), n - 2)
        return ordered[i] + (place - i) * (ordered[i + 1] - ordered[i])

    mean = _mean(gains)
    sd = float(sum((gain - mean) ** 2 for gain in gains) / (n - 1)) ** 0.5
    wins, losses = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    q1, median, q3 = (quantile(Fraction(i, 4)) for i in (1, 2, 3))
    return {
        "gain": mean,
        "sd": sd,
        "error": sd / n**0.5,
        "median": median,
        "min": ordered[0],
        "max": ordered[-1],
        "q1": q1,
        "q3": q3,
        "iqr": q3 - q1,
        "wins": Fraction(wins),
        "losses": Fraction(losses),
        "ties": Fraction(n - wins - losses),
        "nonzero": Fraction(wins + losses),
        "share of wins": Fraction(wins, n),
        "win rate": Fraction(wins, wins + losses),
    }


def _tests(gains: list[Fraction], datasets: list[str]) -> Values:
    """Return the tests of the gains; one-sided, as in the paper."""
    d = np.array([float(gain) for gain in gains])
    shapiro = statistics.shapiro(d)
    t = statistics.paired_t(d, alternative="greater")
    wilcoxon = statistics.wilcoxon(d, alternative="greater")
    sign = statistics.sign_test(d, alternative="greater")
    left = statistics.leave_one_out(d, datasets).detail["means"]
    left_t = statistics.paired_t(list(left.values()), alternative="greater")
    return {
        "W": shapiro.statistic,
        "p Shapiro": shapiro.p,
        "t": t.statistic,
        "df": Fraction(t.detail["df"]),
        "p t": t.p,
        "low t": t.low,
        "V": str(wilcoxon.statistic),
        "p Wilcoxon": wilcoxon.p,
        "low Wilcoxon": wilcoxon.low,
        "r": wilcoxon.detail["r"],
        "p sign": sign.p,
        "low sign": sign.low,
        "high sign": sign.high,
        "df leave one out": Fraction(left_t.detail["df"]),
        "t leave one out": left_t.statistic,
        "p leave one out": left_t.p,
        "low leave one out": left_t.low,
        "mean leave one out": left_t.estimate,
    }


def _mixed(table: Table, models: list[str], datasets: list[str]) -> Values:
    """Return what is said of scores rather than gains: the linear mixed model, and Cohen's d."""
    a, b = (
        [float(score) for (_, metric), row in table.items() if metric == name for score in row]
        for name in ("recos", "cos")
    )
    fit = statistics.mixed_model(a, b, models, datasets).detail
    values: Values = {"d": statistics.cohens_d(a, b), "REML": fit["reml_criterion"]}
    for name, variance in fit["variances"].items():
        values |= {f"variance {name}": variance, f"sd {name}": variance**0.5}
    for name, effect in fit["effects"].items():
        values |= {f"{what} {name}": value for what, value in effect.items()}
    return values | {f"residual {i}": value for i, value in enumerate(fit["residuals"])}

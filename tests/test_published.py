"""The paper's figures: all of them are listed, and each verdict is right."""

import os
import re
import statistics
from fractions import Fraction
from pathlib import Path

import pytest

from recos.evaluate import published

DATA = Path(os.environ.get("RECOS_DATA", Path(__file__).parents[2] / "shared" / "data"))
PAPER = DATA.parent / "paper" / "beyond-cosine-similarity.tex"

NOT_REPRODUCED = {
    ("Table 1, bold marks", "Word2Vec, STS12"): ("recos", "decos"),
    ("Table 1, bold marks", "SGPT, STS16"): ("none", "cos, recos"),
    ("Table 1, bold marks", "GTE, SICK-R"): ("recos", "decos, cos, recos"),
    ("3.3 Overall performance", "micro-average, cos"): ("65.83", "65.82429"),
    ("3.3 Group-wise analysis", "universal (BGE, E5, GTE, SPECTER), largest gain"): (
        "0.96",
        "0.48714",
    ),
    ("3.3 Group-wise analysis", "groups by gain, universal as named"): (
        "static < contextualized < universal",
        "universal < static < contextualized",
    ),
    ("Table 2", "Wilcoxon V"): ("2581", "2580.5"),
    ("Table 2", "Wilcoxon r"): ("0.835", "0.834312"),
    ("3.4 Statistical analysis", "Wilcoxon V"): ("2581", "2580.5"),
    ("3.4 Statistical analysis", "Wilcoxon r"): ("0.835", "0.834312"),
    ("B.5.4 Paired t-test", "p, one-sided"): ("1.84e-10", "1.83497e-10"),
    ("B.5.4 Wilcoxon signed-rank test", "V"): ("2581", "2580.5"),
    ("B.5.4 Wilcoxon signed-rank test", "p, one-sided"): ("5.90e-13", "6.01163e-13"),
    ("B.5.4 Wilcoxon signed-rank test", "effect size r"): ("0.835", "0.834312"),
    ("B.5.6 Leave one data set out", "p, one-sided"): ("1.84e-9", "1.83904e-10"),
    ("B.5.6 Adjusted p-values", "Wilcoxon"): ("5.90e-13", "6.01163e-13"),
    ("B.5.6 Adjusted p-values", "Wilcoxon, adjusted"): ("1.18e-12", "1.20233e-12"),
    ("B.5.7 Effect sizes", "Wilcoxon r"): ("0.835", "0.834312"),
}


@pytest.fixture(scope="module")
def figures():
    return published.figures()


@pytest.fixture(scope="module")
def paper():
    if not PAPER.exists():
        pytest.skip(f"needs the paper's source, {PAPER}")
    return PAPER.read_text(encoding="utf-8")


def test_all_figures_but_these_are_reproduced(figures):
    found = {
        (figure.place, figure.what): (figure.printed, figure.recomputed)
        for figure in figures
        if figure.verdict != "reproduced"
    }
    assert found == NOT_REPRODUCED


def test_only_the_last_digit_is_off_by_rounding(figures):
    off = {figure.printed for figure in figures if figure.verdict == "off by rounding"}
    assert off == {"65.83", "0.835", "1.84e-10"}


def test_each_figure_is_listed_once(figures):
    assert len({(figure.place, figure.what) for figure in figures}) == len(figures)


def test_every_contradiction_is_explained(figures):
    assert [
        figure.what for figure in figures if figure.verdict != "reproduced" and not figure.note
    ] == []


def test_the_mixed_model_is_that_of_the_paper(figures):
    printed = {figure.what: figure.recomputed for figure in figures if "B.5.5" in figure.place}
    assert float(printed["variance, model"]) == pytest.approx(70.468, abs=5e-4)  # lme4: 70.46817
    assert float(printed["variance, data set"]) == pytest.approx(8.7935, abs=5e-4)
    assert float(printed["variance, model x data set"]) == pytest.approx(41.3657, abs=5e-4)
    assert float(printed["variance, residual"]) == pytest.approx(0.063515, abs=5e-6)
    assert float(printed["REML criterion"]) == pytest.approx(599.01005, abs=5e-4)


def test_floats_explain_v_and_its_p():
    table = published.scores()
    d = [
        float(a) - float(b)
        for model in dict.fromkeys(model for model, _ in table)
        for a, b in zip(table[model, "recos"], table[model, "cos"], strict=True)
    ]
    from recos.evaluate.statistics import wilcoxon

    floats = wilcoxon(d, alternative="greater", digits=None)
    assert floats.statistic == 2581
    assert floats.p == pytest.approx(5.90e-13, abs=5e-16)
    assert floats.detail["r"] == pytest.approx(0.83457, abs=5e-6)  # R, rstatix


def test_what_notes_say_of_groups():
    table = published.scores()
    gain = {
        model: float(sum(table[model, "recos"]) - sum(table[model, "cos"])) / 7
        for model, metric in table
        if metric == "cos"
    }
    groups = {name: [gain[model] for model in models] for name, models in published.GROUPS.items()}
    assert [round(statistics.mean(group), 3) for group in groups.values()] == [0.214, 0.274, 0.351]
    assert [round(statistics.median(group), 3) for group in groups.values()] == [
        0.247,
        0.123,
        0.119,
    ]
    assert round(statistics.mean(groups["universal"][:-1]), 3) == 0.198


def test_per_model_the_gain_is_still_there():
    found = published.further()
    t, wilcoxon = found["per model, t-test"], found["per model, Wilcoxon"]
    assert (t.n, t.statistic, t.p) == (
        11,
        pytest.approx(3.25, abs=0.005),
        pytest.approx(0.004, abs=5e-4),
    )
    assert (wilcoxon.statistic, wilcoxon.p) == (66, 1 / 2048)
    assert found["paired t-test"].detail["d_z"] == pytest.approx(0.82, abs=0.005)
    assert found["leave one model out"].low == pytest.approx(0.226, abs=5e-4)
    assert 0 < found["cluster bootstrap"].low < 0.2925 < found["cluster bootstrap"].high


@pytest.mark.parametrize(
    ("printed", "value", "verdict"),
    [
        ("0.5", Fraction(1, 2), "reproduced"),
        ("0.13", Fraction(1, 8), "reproduced"),  # a tie, half up
        ("0.12", Fraction(1, 8), "reproduced"),  # and half down
        ("0.14", Fraction(1, 8), "off by rounding"),
        ("0.15", Fraction(1, 8), "contradicted"),
        ("98.6%", Fraction(71, 72), "reproduced"),
        ("1.84e-9", 1.839e-10, "contradicted"),
        ("<0.001", 0.002, "contradicted"),
        ("<2.20e-16", 1.5e-20, "reproduced"),
        ("-0.006", -0.0064, "reproduced"),
    ],
)
def test_verdicts(printed, value, verdict):
    assert published._compare("", "", printed, value).verdict == verdict


def test_scores_and_bold_marks_are_those_of_the_paper(paper):
    rows = re.findall(r"^([\w-]+) & (decos|cos|recos) & (.+) \\\\$", paper, re.MULTILINE)
    assert len(rows) == 33
    table, columns = published.scores(), (*published.DATASETS, "average")
    bold = {(model, column): [] for model, metric, _ in rows for column in columns}
    printed = {(row["model"], row["metric"]): row["avg"] for row in published._rows("table.csv")}
    for model, metric, cells in rows:
        texts = cells.split(" & ")
        numbers = [re.sub(r"\\textbf\{(.+)\}", r"\1", text) for text in texts]
        assert table[model, metric] == tuple(map(Fraction, numbers[:-1]))
        assert printed[model, metric] == numbers[-1]
        for column, text in zip(columns, texts, strict=True):
            if text.startswith(r"\textbf"):
                bold[model, column].append(metric)
    for place, metrics in bold.items():
        assert published.BOLD.get(place, "recos") == (", ".join(metrics) or "none"), place


@pytest.mark.parametrize(
    ("start", "end", "places"),
    [
        (r"\\paragraph\{Overall Performance\}", r"\\paragraph\{Group-wise", "3.3"),
        (r"\\paragraph\{Group-wise", r"\\begin\{table\*\}\n\\centering", "3.3"),
        (r"\\begin\{tabular\}\{@\{\}lcccc@\{\}\}", r"\\end\{table\*\}", "Table 2"),
        (r"\\paragraph\{Marginal Gains\}", r"\\subsection\{Statistical Analysis\}", "3.3"),
        (r"\\subsection\{Statistical Analysis\}", r"\\section\{Conclusion\}", "3.4"),
        (r"\\label\{app:descriptive_stats\}", r"\\subsubsection\{Normality", "B.5.2"),
        (r"\\label\{app:normality\}", r"\\subsubsection\{Complete", "B.5.3"),
        (r"\\label\{app:hypothesis_tests\}", r"\\subsubsection\{Linear", "B.5.4"),
        (r"\\label\{app:mixed_model_details\}", r"\\subsubsection\{Robustness", "B.5.5"),
        (r"\\label\{app:robustness\}", r"\\subsubsection\{Effect", "B.5.6"),
        (r"\\label\{app:effect_sizes\}", r"\\subsubsection\{Statistical Soft", "B.5.7"),
    ],
)  # fmt: skip
def test_every_decimal_of_the_paper_is_listed(paper, figures, start, end, places):
    [text] = re.findall(f"{start}(.*?){end}", paper, re.DOTALL)
    text = re.sub(r" \\times 10\^\{(-\d+)\}", r"e\1", text)
    listed = {figure.printed.strip("<%") for figure in figures if figure.place.startswith(places)}
    decimals = set(re.findall(r"-?\d+\.\d+(?:e-\d+)?", text.replace("--", " to ")))
    assert decimals
    assert decimals - listed - {"0.001"} == set()

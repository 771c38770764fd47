"""The report says what the numbers say, fetches nothing, and can be read by all."""

import csv
import io
import json
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from recos.evaluate.report import write_report
from recos.evaluate.report.terminal import show
from recos.evaluate.report.words import conclusions, direction, mean_gain, points, verdict
from recos.evaluate.results import Cell, Comparison, Gain

ENCODERS, TASKS = ("small", "large & <slow>"), ("STS12", "SICK-R", "my_pairs")
FIVE = ("a", "b", "c", "d", "e")
VARIANTS = ("cos", "recos", "center+cos")


def made(encoders=ENCODERS, tasks=TASKS, gains=(0.0001, 0.05), significant=(False, True),
         interval=(-0.1, 0.3)):  # fmt: skip
    """Return a comparison with the same gain of a variant in every setting."""
    rng = np.random.default_rng(0)
    cells, sample = [], []
    for encoder in encoders:
        for task in tasks:
            base = 0.6 + 0.01 * len(cells)
            cells.append(Cell(encoder, task, "cos", base, base - 0.02, base + 0.02, {}, None))
            for variant, gain, real in zip(VARIANTS[1:], gains, significant, strict=True):
                half = abs(gain) / 2 if real else abs(gain) * 2
                found = Gain(
                    gain,
                    gain - half,
                    gain + half,
                    0.5,
                    "influence t-test",
                    0.5,
                    0.01 if real else 0.6,
                )
                other = {"Pearson": (base, base - 0.01, base + 0.01)}
                cells.append(
                    Cell(encoder, task, variant, base + gain, base, base + 0.1, other, found)
                )
            human = np.repeat(np.arange(6.0), 20)
            x = np.clip(human / 6 + rng.normal(0, 0.1, 120), -1, 1).round(4)
            sample.append(
                {"encoder": encoder, "task": task, "names": ["cos", "recos"],
                 "baseline": x.tolist(), "other": (x * 1.01).tolist(), "human": human.tolist()}
            )  # fmt: skip
    curve = np.linspace(-0.1, 0.1, 64)
    test = {"name": "two-way t-test", "statistic": 0.1, "p": 0.2, "estimate": 0.1,
            "low": interval[0], "high": interval[1], "n": 6,
            "assumes": "models and data sets are random draws"}  # fmt: skip
    return Comparison(
        settings={
            "variants": list(VARIANTS), "baseline": "cos", "seed": 0, "resamples": 2000,
            "corpus": {"name": "the training sentences of STS-B", "texts": 1662, "left_out": 8874},
        },
        encoders=[
            {"name": name, "facts": {"checkpoint": name, "dimension": 64},
             "profile": {"low": (curve - 0.01).tolist(), "middle": curve.tolist(),
                         "high": (curve + 0.01).tolist()},
             "diagnosis": {"advice": "Keep the cosine.", "mean_cosine": 0.1}}
            for name in encoders
        ],
        tasks=[
            {"name": name, "kind": "sts", "measure": "Spearman", "rows": 120, "texts": 240,
             "facts": {"licence": "CC0", "checksum": "ab" * 32}}
            for name in tasks
        ],
        cells=cells,
        across={variant: {"two_way_t": test} for variant in VARIANTS[1:]},
        sample=sample,
        made={"date": "2026-01-01", "command": "recos compare small"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    write_report(made(), path)
    return path


# --- Words and tables ----------------------------------------------------------------------------


def test_points_are_hundredths_with_a_sign_where_asked():
    assert [points(0.7237), points(-0.01), points(math.nan)] == ["72.37", "−1.00", "–"]
    assert [points(0.001, signed=True), points(-1e-7, signed=True)] == ["+0.10", "0.00"]


def test_a_gain_that_is_not_significant_is_called_so():
    none = made(gains=(0.0001, 0.02), significant=(False, False))
    assert "the difference is not significant in any setting" in verdict(none, "recos")
    told = "No variant ranks significantly better than cos here: keep cos."
    assert conclusions(none)[1:3] == [f"{encoder}: {told}" for encoder in ENCODERS]


def test_a_gain_needs_both_the_interval_and_the_adjusted_p():
    gain = {"estimate": 0.1, "p": 0.01, "test": "influence t-test", "bootstrap_p": 0.01}
    assert Gain(**gain, low=0.05, high=0.2, adjusted=0.03).significant
    assert Gain(**gain, low=-0.2, high=-0.05, adjusted=0.03).significant
    assert not Gain(**gain, low=-0.01, high=0.2, adjusted=0.03).significant
    assert not Gain(**gain, low=0.05, high=0.2, adjusted=0.06).significant
    assert not Gain(**gain, low=0.05, high=0.2).significant  # not adjusted yet


def test_the_best_variant_and_what_is_cheaper_than_recos_are_named():
    said = conclusions(made(FIVE, interval=(4, 6)))
    assert said[0].startswith("Few rows, so a first look and no benchmark: STS12 (120), SICK-R")
    assert "center+cos has the best mean" in said[1]
    assert "+5.00 points (+4.00 to +6.00)" in said[1]
    assert "significantly better in 15 and worse in 0 of 15 settings" in said[1]
    assert said[-1].startswith("Cheaper than recos and higher: center+cos, by 4.99")
    worse = conclusions(made(FIVE, gains=(0.05, -0.05), significant=(True, True), interval=(4, 6)))
    assert worse[1].startswith("recos has the best mean")
    assert worse[-1] == "Nothing cheaper than recos has a higher mean here."


def test_the_baseline_is_kept_where_the_interval_of_the_mean_holds_zero():
    said = conclusions(made(FIVE, interval=(-0.03, 0.27)))
    assert said[1].startswith("Keep cos: center+cos has the highest mean, but not for certain")
    assert "+5.00 points (−0.03 to +0.27)" in said[1]


def test_of_equal_means_the_simpler_variant_is_named():
    same = made(FIVE, gains=(0.05, 0.050001), significant=(True, True), interval=(4, 6))
    assert conclusions(same)[1].startswith("center+cos has the best mean")  # recos sorts
    assert "Cheaper than recos and as high: center+cos." in conclusions(same)
    none = made(FIVE, gains=(0.000001, -0.01), significant=(True, True), interval=(4, 6))
    assert conclusions(none)[1].startswith("Keep cos: no variant has a higher mean")


def test_a_few_encoders_have_a_conclusion_each():
    several = made(gains=(0.0001, 0.02), significant=(False, False))
    for i, cell in enumerate(several.cells):
        if cell.encoder == "small" and cell.variant == "center+cos":
            gain = replace(cell.gain, estimate=0.05, low=0.04, high=0.06, adjusted=0.01)
            several.cells[i] = replace(cell, score=cell.score + 0.03 + 1e-3 * i, gain=gain)
    said = conclusions(several)
    assert re.search(r"^small: center\+cos has the best mean.* \(\+\S+ to \+\S+\); sign", said[1])
    assert said[2].startswith("large & <slow>: No variant ranks significantly better than cos")


def test_two_tasks_have_no_interval_across_settings():
    few = made(FIVE, TASKS[:2], interval=(4, 6))
    assert np.isnan(mean_gain(few, "recos")[1:]).all()
    assert np.isnan(mean_gain(made(interval=(4, 6)), "recos")[1:]).all()  # nor two encoders
    assert mean_gain(made(FIVE, interval=(4, 6)), "recos")[1:] == (0.04, 0.06)
    assert direction(few, "center+cos") == 1  # all settings agree
    assert direction(few, "recos") == 0


def test_different_measures_have_no_mean_in_common(tmp_path):
    mixed = made(interval=(4, 6))
    mixed.tasks[2]["measure"] = "nDCG@10"
    said = conclusions(mixed)
    assert {text.partition(":")[0] for text in said[1:]} == {"Spearman", "nDCG@10"}
    write_report(mixed, tmp_path)
    with Console(file=io.StringIO(), width=100) as console:
        show(mixed, console)
    assert "nDCG@10 × 100" in console.file.getvalue()
    assert "| mean |" not in (tmp_path / "results.md").read_text("utf-8")
    assert "Avg." not in (tmp_path / "results.tex").read_text("utf-8")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert ">mean<" not in page
    assert "There is no mean over different measures" in page


def test_tests_across_settings_say_what_they_estimate(tmp_path):
    comparison = made()
    test = comparison.across["recos"]["two_way_t"]
    comparison.across["recos"] |= {
        "per_dataset": dict(test),  # the same again, as with one encoder
        "leave_one_dataset_out": test | {"name": "leave one out", "low": 0.05, "high": 0.15},
        "sign": test | {"name": "sign test", "estimate": 0.5, "p": 0.9},
    }
    page = write_report(comparison, tmp_path)[0].read_text("utf-8")
    assert "per dataset" not in page
    assert "mean gains without one: from 0.05 to 0.15; the largest p and its t" in page
    assert page.count("0.05 to 0.15") == 1
    assert "share of settings with a gain, from 0 to 1" in page


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_terminal_shows_every_mean_and_task(width):
    many = made(tasks=[f"task-{i}" for i in range(9)])
    with Console(file=io.StringIO(), width=width) as console:
        show(many, console)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    for encoder in ENCODERS:
        scores = [many.cell(encoder, task, "recos").score for task in many.task_names]
        shown = " ".join(" ".join(line.split()[1:]) for line in lines if line.startswith("recos"))
        for score in [float(np.mean(scores)), *scores]:
            assert points(score) in shown.split()
    assert (
        max(map(len, [line for line in lines if line[:5] in ("score", "Spear", "recos")])) <= width
    )


def test_results_come_back_from_their_file(folder):
    read = Comparison.load(folder / "results.json")
    assert read.to_json() == made().to_json()
    assert read.cell("small", "STS12", "recos") == made().cell("small", "STS12", "recos")
    again = folder / "again"
    write_report(read, again)
    for path in folder.glob("re*.*"):
        assert (again / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("text", ["[]", "{}", "no json", '{"cells": []}'])
def test_other_files_are_no_results(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json: expected results of `recos compare`"):
        Comparison.load(tmp_path / "x.json")


def test_vectors_are_no_results_and_are_not_printed(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(500, 8)))
    with pytest.raises(ValueError, match=r"x\.npy: expected results of `recos compare`") as error:
        Comparison.load(tmp_path / "x.npy")
    assert len(str(error.value)) < 300


def test_results_of_another_schema_are_refused(folder, tmp_path):
    content = json.loads((folder / "results.json").read_text("utf-8")) | {"schema": 99}
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="expected results of schema 1, got 99"):
        Comparison.load(tmp_path / "x.json")


def test_numbers_that_are_not_finite_are_null_in_the_file(tmp_path):
    comparison = made()
    comparison.settings["odd"] = math.inf
    comparison.save(tmp_path / "x.json")
    content = json.loads((tmp_path / "x.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert content["settings"]["odd"] is None


def test_csv_has_a_line_for_each_score(folder):
    with (folder / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(ENCODERS) * len(TASKS) * len(VARIANTS)
    for row, cell in zip(rows, made().cells, strict=True):
        assert (row["encoder"], row["task"], row["variant"]) == (
            cell.encoder,
            cell.task,
            cell.variant,
        )
        assert float(row["score"]) == cell.score
        assert row["gain"] == ("" if cell.gain is None else str(cell.gain.estimate))


def test_markdown_tables_are_whole(folder):
    text = (folder / "results.md").read_text("utf-8")
    assert "| recos | 60.01 |" in text
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_latex_has_the_form_of_the_paper(folder):
    text = (folder / "results.tex").read_text("utf-8")
    assert r"Model & Method & STS12 & SICK-R & my\_pairs & Avg. \\" in text
    assert r"large \& <slow> & center+cos & \textbf{74.00}" in text
    assert text.count(r"\addlinespace") == len(ENCODERS) - 1
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(TASKS) + 2}


# --- The page in a browser -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium that logs what it requests."""
    webdriver = pytest.importorskip("selenium.webdriver")
    paths = shutil.which("chromium"), shutil.which("chromedriver")
    if None in paths:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    flags = ["headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
             "disable-background-networking", "disable-component-update", "disable-sync",
             f"user-data-dir={tmp_path_factory.mktemp('browser')}"]  # fmt: skip
    for flag in flags:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths[1]))
    yield driver
    driver.quit()


@pytest.fixture(params=["light", "dark", "phone"])
def shown(request, browser, folder):
    """The browser with the report, in one of the ways in which it is read."""
    width = 390 if request.param == "phone" else 1280
    scheme = "dark" if request.param == "dark" else "light"
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get((folder / "report.html").as_uri())
    for details in browser.find_elements("tag name", "details"):
        browser.execute_script("arguments[0].open = true", details)
    return browser


def test_the_page_asks_for_nothing_and_complains_of_nothing(shown, folder):
    assert shown.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in shown.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked - {"data:,"} == {(folder / "report.html").as_uri()}


def test_the_page_never_scrolls_sideways(shown):
    wide = shown.execute_script("return document.documentElement.scrollWidth")
    assert wide <= shown.execute_script("return document.documentElement.clientWidth")


def test_charts_are_drawn(shown):
    charts = shown.find_elements("css selector", "svg.chart")
    settings = len(ENCODERS) * len(TASKS)
    assert len(charts) == 1 + len(VARIANTS) - 1 + 2 * settings + len(ENCODERS)
    boxes = shown.execute_script(
        "return [...document.querySelectorAll('.chart circle, .dots, .band, .curve')].map(x => {"
        " const box = x.getBBox(), page = x.closest('svg').viewBox.baseVal;"
        " return box.x >= 0 && box.x + box.width <= page.width && box.y >= 0"
        " && box.y + box.height <= page.height && box.width + box.height > 0})"
    )
    gains = (len(VARIANTS) - 1) * (1 + settings)
    assert len(boxes) == gains + 10 * settings + 2 * len(ENCODERS)
    assert all(boxes)
    cut = shown.execute_script(
        "return [...document.querySelectorAll('svg.chart text')].filter(x => {"
        " const box = x.getBBox(), page = x.closest('svg').viewBox.baseVal;"
        " return box.x < 0 || box.x + box.width > page.width + 0.5"
        " || box.y + box.height > page.height"
        "}).map(x => x.textContent)"
    )
    assert cut == []


def test_axe_finds_no_violation(shown):
    package = pytest.importorskip("axe_core_python")
    newer = os.environ.get("RECOS_AXE")  # another axe.min.js
    script = Path(newer) if newer else Path(package.__path__[0], "axe.min.js")
    shown.execute_script(script.read_text("utf-8"))
    found = shown.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 20
    assert [(x["id"], [node["html"] for node in x["nodes"]]) for x in found["violations"]] == []


def test_everything_that_folds_or_scrolls_takes_the_keyboard(shown):
    reached = shown.execute_script(
        "return [...document.querySelectorAll('.scroll, summary, pre, nav a')]"
        ".every(x => { x.focus(); return document.activeElement === x })"
    )
    assert reached


def test_every_chart_is_described_and_names_are_escaped(folder):
    text = (folder / "report.html").read_text("utf-8")
    charts = re.findall(r"<svg [^>]*>", text)
    assert all('role="img"' in chart and len(chart) > 120 for chart in charts)
    assert "large &amp; &lt;slow&gt;" in text
    assert "<slow>" not in text


def test_a_large_report_stays_small(tmp_path):
    many = made(encoders=[f"model {i}" for i in range(11)], tasks=[f"task {i}" for i in range(7)])
    assert write_report(many, tmp_path)[0].stat().st_size < 3e6


def test_one_setting_has_one_chart_of_gains(tmp_path):
    page = write_report(made(encoders=["small"], tasks=["STS12"]), tmp_path)[0].read_text("utf-8")
    assert "in this setting" in page
    assert page.count("<svg") == 1 + 2 + 1


def test_the_page_says_where_the_diagnosis_was_wrong_and_repeats_its_words(tmp_path):
    comparison = made(encoders=["small"])
    change = {"points": 1.0, "low": 0.5, "high": 2.0, "verdict": "helps"}
    comparison.encoders[0]["diagnosis"] = {
        "advice": "Try it.", "summary": {"random cosine": "0.1 on average"},
        "odd": {"huge": 1}, "row_share": 0.25, "as_checked": True,
        "expected": {"recos": change | {"low": -0.1}, "center+cos": change},
    }  # fmt: skip
    page = write_report(comparison, tmp_path)[0].read_text("utf-8")
    assert "Outside the range: center+cos +5.00. The" in page
    assert "<dt>random cosine</dt><dd>0.1 on average</dd>" in page
    assert "<dt>odd rows</dt><dd>1 huge</dd>" in page
    assert "row share" not in page


def test_the_page_tells_which_p_values_are_adjusted(folder):
    page = (folder / "report.html").read_text("utf-8")
    assert "those of the tests across settings are not" in page
    assert "All p-values of the report are adjusted" not in page
    assert "Williams" not in page
    assert "A mean of settings is filled where its interval" in page

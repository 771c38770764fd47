"""A comparison gives the scores it names, says what is real, and goes on where it was killed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist
from typer.testing import CliRunner

from recos.evaluate.compare import compare
from recos.evaluate.encoders import default_encoder
from recos.evaluate.measures import average_precision
from recos.evaluate.results import Comparison
from recos.evaluate.scoring import texts_of
from recos.evaluate.tasks import Pairs, Retrieval, default_task
from recos.evaluate.variants import ALIASES, Transformed, find_variants

FAST = {"resamples": 200, "progress": False}


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("RECOS_DATA", raising=False)


def vectors_of(table):
    """Return an encoder of texts that are row numbers."""

    def encode(texts):
        return table[[int(text.split()[-1]) for text in texts]]

    encode.cache_key = str(hash(table.tobytes()))
    return encode


def corpus_of(path, count, start=10_000):
    path.write_text("".join(f"text {start + i}\n" for i in range(count)))
    return path


@pytest.fixture
def made(rng, tmp_path):
    """Pairs whose cosine follows the human scores behind a large common mean."""
    human = rng.uniform(0, 5, 300)
    first = rng.normal(size=(300, 24))
    second = first * human[:, None] / 5 + rng.normal(size=(300, 24)) * (1 - human[:, None] / 5)
    table = np.zeros((10_200, 24), np.float32)
    table[:300], table[300:600], table[10_000:] = first, second, rng.normal(size=(200, 24))
    table += 4 * rng.normal(size=24)
    texts = [f"text {i}" for i in range(600)]
    subsets = ("a",) * 200 + ("b",) * 100
    task = Pairs("made", "sts", tuple(texts[:300]), tuple(texts[300:]), human, subsets)
    return task, vectors_of(table), table, corpus_of(tmp_path / "corpus.txt", 200)


def found_in(made, **options):
    task, encode, _, corpus = made
    return compare([encode], [task], corpus=corpus, **(FAST | options))


# --- Scores --------------------------------------------------------------------------------------


def test_scores_are_correlations_with_the_human_scores(made):
    task, _, table, _ = made
    found = found_in(made, variants=["cos", "euclidean", "center+cos", "dot", "manhattan"])
    u, v = table[:300].astype(float), table[300:600].astype(float)
    mean = table[10_000:].astype(float).mean(axis=0)
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u, v, u - mean, v - mean)]
    truth = {
        "cos": (unit[0] * unit[1]).sum(axis=1),
        "center+cos": (unit[2] * unit[3]).sum(axis=1),
        "dot": (u * v).sum(axis=1),
        "euclidean": -np.sqrt(((u - v) ** 2).sum(axis=1)),
        "manhattan": -np.abs(u - v).sum(axis=1),
    }
    for cell in found.cells:
        rho = stats.spearmanr(truth[cell.variant], task.scores).statistic
        assert cell.score == pytest.approx(rho, abs=1e-4)
        assert cell.low < cell.score < cell.high
        r = stats.pearsonr(truth[cell.variant], task.scores).statistic
        assert cell.other["Pearson"][0] == pytest.approx(r, abs=1e-5)
        parts = [
            stats.spearmanr(truth[cell.variant][part], task.scores[part]).statistic
            for part in (slice(0, 200), slice(200, 300))
        ]
        assert cell.other["Spearman, mean of subsets"][0] == pytest.approx(np.mean(parts), abs=1e-4)


def test_aliases_are_correlations_of_components(made):
    task, _, table, _ = made
    found = found_in(made, variants=["pearson", "spearman", "cos"])
    rows = zip(table[:300], table[300:600], strict=True)
    both = [(stats.pearsonr(u, v).statistic, stats.spearmanr(u, v).statistic) for u, v in rows]
    for name, values in zip(("pearson", "spearman"), np.transpose(both), strict=True):
        truth = stats.spearmanr(values, task.scores).statistic
        [cell] = [cell for cell in found.cells if cell.variant == name]
        assert cell.score == pytest.approx(truth, abs=1e-4)
    assert found.settings["aliases"] == {n: ALIASES[n] for n in ("pearson", "spearman")}


@pytest.mark.parametrize("few", ["two pairs", "constant scores", "constant similarities", "all"])
def test_subsets_without_a_correlation_are_left_out_and_counted(made, few):
    task, _, table, corpus = made
    scores, table, last = task.scores.copy(), table.copy(), slice(280, 300)
    if few == "two pairs":
        last = slice(298, 300)
    elif few == "constant scores":
        scores[last] = 2
    elif few == "constant similarities":
        table[280:300] = table[580:600] = table[0]
    names = np.array(["a"] * 200 + ["b"] * 100)
    names[last] = "c"
    if few == "all":
        names = np.repeat(np.arange(150), 2).astype(str)
    task = Pairs("made", "sts", task.first, task.second, scores, tuple(names))
    found = compare(
        [vectors_of(table)], [task], variants=["cos", "euclidean"], corpus=corpus, **FAST
    )
    u, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (table[:300], table[300:600]))
    parts = [stats.spearmanr((u * v).sum(axis=1)[names == name], scores[names == name]).statistic
             for name in "ab"]  # fmt: skip
    other = found.cells[0].other
    if few == "all":
        assert set(other) == {"Pearson"}
        return
    assert set(other) == {"Pearson", "Spearman, mean of 2 of 3 subsets",
                          "Pearson, mean of 2 of 3 subsets"}  # fmt: skip
    assert other["Spearman, mean of 2 of 3 subsets"][0] == pytest.approx(np.mean(parts), abs=1e-4)


def test_a_real_gain_is_significant_and_no_gain_is_not(made):
    found = found_in(made, variants=["cos", "center+cos", "decos"], resamples=1000)
    by_name = {cell.variant: cell for cell in found.cells}
    assert by_name["cos"].gain is None
    gain = by_name["center+cos"].gain
    assert gain.significant
    assert gain.estimate == pytest.approx(by_name["center+cos"].score - by_name["cos"].score)
    task, _, table, corpus = made
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)  # there decos is the cosine
    same = compare([vectors_of(unit)], [task], variants=["cos", "decos"], corpus=corpus, **FAST)
    assert not same.cells[1].gain.significant
    assert abs(same.cells[1].gain.estimate) < 1e-3


def test_three_pairs_are_enough_and_prove_nothing():
    texts = default_task().first[:6]
    task = Pairs("three", "sts", texts[:3], texts[3:], np.array([1.0, 2.0, 3.0]))
    found = compare(None, [task], variants=["cos", "recos", "euclidean"], **FAST)
    gains = [cell.gain for cell in found.cells if cell.gain]
    assert {gain.test for gain in gains} == {"paired bootstrap"}
    assert not any(gain.significant for gain in gains)


def test_p_values_are_adjusted_over_the_whole_report(made):
    found = found_in(made)
    gains = [cell.gain for cell in found.cells if cell.gain]
    truth = stats.false_discovery_control([gain.p for gain in gains])
    np.testing.assert_allclose([gain.adjusted for gain in gains], truth)
    assert {gain.test for gain in gains} == {"influence t-test"}


def test_settings_are_tested_together(made):
    task, encode, _, corpus = made
    tasks = [task] + [
        Pairs(f"part {i}", "sts", task.first[i::3], task.second[i::3], task.scores[i::3])
        for i in range(3)
    ]
    found = compare([encode, default_encoder()], tasks, variants=["cos", "center+cos"],
                    corpus=corpus, **FAST)  # fmt: skip
    assert found.scores("cos").shape == (2, 4)
    tests = found.across["center+cos"]
    gains = 100 * found.gains("center+cos").ravel()
    assert tests["paired_t"]["p"] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue)
    assert tests["paired_t"]["estimate"] == pytest.approx(gains.mean())


def test_labelled_pairs_are_scored_by_average_precision(rng, tmp_path):
    labels = (rng.random(200) < 0.3).astype(float)
    first = rng.normal(size=(200, 8))
    second = np.round(first * labels[:, None] + rng.normal(size=(200, 8)), 1)
    table = np.concatenate([first, second, rng.normal(size=(9_800, 8))]).astype(np.float32)
    texts = tuple(f"text {i}" for i in range(400))
    task = Pairs("labels", "pairs", texts[:200], texts[200:], labels)
    found = compare([vectors_of(table)], [task], variants=["cos", "recos"],
                    corpus=corpus_of(tmp_path / "c.txt", 50, 5000), **FAST)  # fmt: skip
    from recos import paired

    for cell in found.cells:
        similar = paired(table[:200], table[200:400], metric=cell.variant)
        [truth] = average_precision(labels, similar)(np.ones((1, 200)))
        assert cell.score == pytest.approx(truth, abs=1e-9)
        assert cell.low < cell.score < cell.high
    assert found.cells[1].gain.test == "paired bootstrap"


def test_retrieval_is_scored_by_ndcg(rng, tmp_path):
    table = rng.normal(size=(10_100, 8)).astype(np.float32)
    table[:20] = table[100:120] + 0.1 * table[:20]  # query i is near document i
    queries = {f"q{i}": f"text {i}" for i in range(20)}
    documents = {f"d{i}": f"text {100 + i}" for i in range(150)}
    task = Retrieval("found", queries, documents, {f"q{i}": {f"d{i}": 1} for i in range(20)})
    found = compare([vectors_of(table)], [task], variants=["cos", "recos", "euclidean"],
                    corpus=corpus_of(tmp_path / "c.txt", 50, 5000), **FAST)  # fmt: skip
    assert [cell.score for cell in found.cells] == [1, 1, 1]
    assert found.tasks[0]["measure"] == "nDCG@10"
    assert found.cells[0].other["R@100"][0] == 1
    assert not any(cell.gain and cell.gain.significant for cell in found.cells)
    assert found.sample == []


def test_a_document_is_no_answer_to_the_query_of_its_id(rng, tmp_path):
    table = rng.normal(size=(10_100, 8)).astype(np.float32)
    table[100:120] = table[:20] + 0.1 * table[100:120]  # document i + 100 is near document i
    documents = {f"d{i}": f"text {i}" for i in range(150)}
    queries = {f"d{i}": f"text {i}" for i in range(20)}
    task = Retrieval("twins", queries, documents, {f"d{i}": {f"d{i + 100}": 1} for i in range(20)})
    found = compare([vectors_of(table)], [task], variants=["cos", "recos", "euclidean"],
                    corpus=corpus_of(tmp_path / "c.txt", 50, 5000), **FAST)  # fmt: skip
    assert [cell.score for cell in found.cells] == [1, 1, 1]


@pytest.mark.parametrize("metric", ["recos", "cos", "decos", "dot", "euclidean", "manhattan"])
def test_lists_hold_what_is_most_similar(rng, metric):
    X, Y = rng.normal(size=(7, 6)), rng.normal(size=(90, 6))
    [variant] = find_variants(metric)
    paired = np.array([variant.paired(np.repeat(x[None], 90, axis=0), Y) for x in X])
    np.testing.assert_array_equal(
        variant.best(X, Y, 12), np.argsort(-paired, kind="stable")[:, :12]
    )
    if metric in ("euclidean", "manhattan"):
        kind = {"euclidean": "euclidean", "manhattan": "cityblock"}[metric]
        np.testing.assert_allclose(-paired, cdist(X, Y, kind))


# --- Corpus and variants -------------------------------------------------------------------------


def test_transforms_never_learn_from_the_pairs_of_a_task(made, tmp_path):
    task, encode, _, corpus = made
    mixed = tmp_path / "mixed.txt"
    mixed.write_text(corpus.read_text() + "\n".join(task.first) + "\n")
    assert mixed.read_text() != corpus.read_text()
    clean, other = (
        compare([encode], [task], corpus=path, variants=["cos", "center+cos"], **FAST)
        for path in (corpus, mixed)
    )
    assert other.settings["corpus"] == {"name": "mixed.txt", "texts": 200, "left_out": 300}
    assert clean.scores("center+cos") == other.scores("center+cos")


def test_the_default_corpus_is_named_and_not_the_pairs(monkeypatch, tmp_path):
    found = compare(variants=["cos", "center+cos"], **FAST)
    assert found.settings["corpus"] == {
        "name": "the corpus of the package", "texts": 190, "left_out": 0,
    }  # fmt: skip
    (tmp_path / "sts").mkdir()
    lines = ["subset\tscore\tsentence1\tsentence2"]
    lines += [f"x\t{i}\tA sentence of {i} words.\tAnother of {i}." for i in range(5)]
    (tmp_path / "sts" / "stsb-train.tsv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("RECOS_DATA", str(tmp_path))
    found = compare(variants=["cos", "center+cos"], **FAST)
    assert found.settings["corpus"]["name"] == "the training sentences of STS-B"
    assert found.settings["corpus"]["texts"] == 10


def test_transforms_are_fitted_once_on_the_corpus(rng):
    corpus, X = rng.normal(size=(50, 4)), rng.normal(size=(3, 4)) + 9
    transformed = Transformed(corpus)
    [first] = transformed.of("center", X)
    np.testing.assert_allclose(first, X - corpus.mean(axis=0))
    np.testing.assert_array_equal(transformed.of("center", X)[0], first)
    assert transformed.of("", X)[0] is X


def test_variants_are_read_by_name():
    names = [variant.name for variant in find_variants(["paper", "cos", "rank+rowcenter+cos"])]
    assert names == ["decos", "cos", "recos", "rank+rowcenter+cos"]


@pytest.mark.parametrize("name", ["cosine", "centre+cos", "cos+center", "", "+cos", "center+"])
def test_unknown_variants_are_named(name):
    if name == "+cos":
        assert find_variants(name)[0].chain == ""
        return
    with pytest.raises(ValueError, match=r"variants: expected one of recos, .* got"):
        find_variants(name)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"resume": True}, "resume: expected out, the folder of the earlier run, got None"),
        ({"variants": "cos"}, "variants: expected at least one beside cos"),
        ({"baseline": "cosine"}, "variants: expected one of"),
        ({"tasks": ["default", "default"]}, "tasks: .* got 'packaged pairs' twice"),
        ({"encoders": ["default", None]}, "encoders: .* twice"),
        (
            {"encoders": lambda texts: [[1.0, 2.0, 4.0]] * len(texts)},
            "are alike, check the encoder",
        ),
        ({"encoders": lambda texts: [[np.nan, 1.0]] * len(texts)}, "NaN or infinity for the text"),
    ],
)
def test_what_cannot_be_compared_is_said(options, told):
    with pytest.raises(ValueError, match=told):
        compare(**(FAST | options))


def test_ready_vectors_learn_from_their_other_rows(made, tmp_path):
    task, encode, table, corpus = made
    texts = [*task.first, *task.second, *corpus.read_text().splitlines()]
    np.save(tmp_path / "ready.npy", encode(texts))
    options = FAST | {"tasks": [task], "variants": ["cos", "center+cos"]}
    with pytest.raises(ValueError, match=r"for center\+cos to learn from, found none; add some"):
        compare(tmp_path / "ready.npy", **options)
    np.save(tmp_path / "few.npy", table[:600])
    few = compare(tmp_path / "few.npy", **(options | {"variants": ["cos", "pearson"]}))
    (tmp_path / "ready.txt").write_text("\n".join(texts) + "\n")
    ready = compare(tmp_path / "ready.npy", **options)
    told = ready.encoders[0]["facts"]["transforms learn from"]
    assert told == "200 rows of ready.npy that no task holds"
    truth = compare(encode, corpus=corpus, **options)
    np.testing.assert_array_equal(ready.scores("center+cos"), truth.scores("center+cos"))
    np.testing.assert_array_equal(few.scores("cos"), truth.scores("cos"))


def test_a_corpus_of_the_tasks_alone_is_refused(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("\n".join(texts_of(default_task())))
    with pytest.raises(ValueError, match=r"2 or more texts that no task holds, got 0 in own\.txt"):
        compare(corpus=path, **FAST)
    with pytest.raises(FileNotFoundError, match="one text a line, found none"):
        compare(corpus=tmp_path / "missing.txt", **FAST)


# --- Again and after a kill ----------------------------------------------------------------------


def test_the_same_call_gives_the_same_results():
    first, second = (compare(variants=["cos", "recos"], **FAST).to_json() for _ in range(2))
    assert first == second


SLOW = """
    import sys, time
    from pathlib import Path
    import numpy as np
    from recos.evaluate.compare import compare

    def encode(texts):
        with open("log.txt", "a") as log:
            log.write("|".join(texts) + chr(10))
        time.sleep(float(sys.argv[1]))
        rows = [np.random.default_rng(len(t) + sum(map(ord, t))).normal(size=8) for t in texts]
        return np.array(rows) + 1

    encode.cache_key = "1"
    found = compare(encode, ["a.tsv", "b.tsv"], out="out", resume=sys.argv[2] == "resume",
                    variants=["cos", "recos", "center+cos"], resamples=200, progress=False)
    found.save(Path("found.json"))
"""


def encoded(log):
    return [set(line.split("|")) for line in log.read_text().splitlines()] if log.exists() else []


def test_after_a_kill_nothing_that_was_finished_is_encoded_again(tmp_path, rng):
    for name in "ab":
        rows = [f"{rng.integers(6)}\t{name} {i}\t{name}{i} other" for i in range(400)]
        (tmp_path / f"{name}.tsv").write_text("score\tsentence1\tsentence2\n" + "\n".join(rows))
    command = [sys.executable, "-c", textwrap.dedent(SLOW)]
    log = tmp_path / "log.txt"
    with subprocess.Popen([*command, "0.4", "new"], cwd=tmp_path) as process:
        # The corpus is one block, the first task four, and then the second task begins.
        deadline = time.monotonic() + 120
        while len(encoded(log)) < 7 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    before = encoded(log)
    finished = set().union(*before[:-1])
    settings = list((tmp_path / "out" / "cache").glob("*.json"))
    assert len(settings) == 1
    kept = settings[0].read_bytes(), settings[0].stat().st_mtime_ns
    log.unlink()
    subprocess.run([*command, "0", "resume"], cwd=tmp_path, check=True)
    again = set().union(*encoded(log))
    assert again
    assert not again & finished
    assert (settings[0].read_bytes(), settings[0].stat().st_mtime_ns) == kept
    resumed = Comparison.load(tmp_path / "found.json")
    log.unlink()
    subprocess.run([*command, "0", "resume"], cwd=tmp_path, check=True)
    assert encoded(log) == []
    os.rename(tmp_path / "out", tmp_path / "other")
    subprocess.run([*command, "0", "new"], cwd=tmp_path, check=True)
    whole = Comparison.load(tmp_path / "found.json")
    one, two = resumed.to_json(), whole.to_json()
    for name in one:
        assert one[name] == two[name]


def test_the_command_that_makes_it_again_names_the_device():
    made = compare(variants=["cos", "recos"], device="cpu", **FAST).made
    assert made["command"].endswith("--seed 0 --resamples 200 --device cpu")


def test_finished_scores_serve_only_the_same_question(tmp_path):
    def settings():
        return len(list((tmp_path / "cache").glob("*.json")))

    options = FAST | {"out": tmp_path, "resume": True}
    compare(variants=["cos", "recos"], **options)
    compare(variants=["cos", "recos"], **options)
    assert settings() == 1
    compare(variants=["cos", "decos"], **options)
    compare(variants=["cos", "recos"], **(options | {"seed": 1}))
    assert settings() == 3


def test_finished_scores_do_not_serve_other_texts_of_the_same_rows(tmp_path, rng):
    task = default_task()
    texts = list(dict.fromkeys([*task.first, *task.second]))
    np.save(tmp_path / "e.npy", default_encoder().encode(texts))
    options = FAST | {"out": tmp_path, "resume": True, "variants": ["cos", "recos"]}
    found = []
    for order in (np.arange(len(texts)), rng.permutation(len(texts))):
        (tmp_path / "e.txt").write_text("\n".join(texts[i] for i in order) + "\n")
        found.append(compare(tmp_path / "e.npy", **options).scores("cos").item())
    assert found[0] > 0.5 > found[1]


def test_finished_scores_do_not_serve_another_task_of_the_same_texts(tmp_path, rng):
    table = rng.normal(size=(10_100, 8)).astype(np.float32)
    table[:20] = table[100:120] + 0.1 * table[:20]
    queries = {f"q{i}": f"text {i}" for i in range(20)}
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(20)}
    options = FAST | {"out": tmp_path, "resume": True, "variants": ["cos", "recos"],
                      "corpus": corpus_of(tmp_path / "c.txt", 50, 5000)}  # fmt: skip
    encode = vectors_of(table)
    encode.cache_key = "1"
    for ids, score in ((range(150), 1), (range(149, -1, -1), 0)):
        documents = {f"d{i}": f"text {100 + j}" for j, i in enumerate(ids)}
        found = compare([encode], [Retrieval("found", queries, documents, qrels)], **options)
        assert found.scores("cos").item() == pytest.approx(score, abs=0.2)
    labels = np.arange(50) % 2.0
    texts = tuple(f"text {i}" for i in range(100))
    for kind in ("sts", "pairs"):
        task = Pairs("two", kind, texts[:50], texts[50:], labels)
        measure = compare([encode], [task], **options).cells[1].gain.test
        assert (measure == "paired bootstrap") == (kind == "pairs")


# --- The command line ----------------------------------------------------------------------------


def run(*arguments, code=0):
    from recos.cli import compare as _  # noqa: F401
    from recos.cli.commands import app

    result = CliRunner().invoke(app, [str(x) for x in arguments])
    assert result.exit_code == code, result.output
    return result


def without(*modules, then):
    """Return a program for which some modules are not installed."""
    return textwrap.dedent(f"""
        import socket, sys
        class Missing:
            def find_spec(self, name, *_):
                if name.partition(".")[0] in {modules}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        sys.meta_path.insert(0, Missing())
    """) + textwrap.dedent(then)


def test_the_default_needs_neither_network_nor_torch(tmp_path):
    code = without("torch", "sentence_transformers", "huggingface_hub", then="""
        def refuse(*_): raise OSError("the network was asked for")
        socket.socket.connect = socket.getaddrinfo = refuse
        from recos.cli import main
        main()
    """)  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", code, "compare"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "gain over cos" in result.stdout
    written = {path.name for path in (tmp_path / "recos-compare").glob("*.*")}
    assert written == {"report.html", "results.json", "results.csv", "results.md", "results.tex"}


def test_a_missing_extra_is_one_line(tmp_path):
    code = without("scipy", then="from recos.cli import main; main()")
    result = subprocess.run(
        [sys.executable, "-c", code, "compare", "--variants", "cos,recos"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr == "recos: scipy is not installed: pip install 'recos[compare]'\n"


def test_json_is_that_of_the_file_and_the_report_can_be_written_again(tmp_path):
    out = tmp_path / "out"
    printed = run("compare", "--variants", "cos,recos", "--resamples", 100, "-o", out, "--json")
    assert json.loads(printed.stdout) == json.loads((out / "results.json").read_text("utf-8"))
    again = tmp_path / "again"
    shown = run("report", out / "results.json", "-o", again)
    assert "recos" in shown.stdout
    assert (again / "report.html").read_bytes() == (out / "report.html").read_bytes()


def test_quiet_prints_nothing(tmp_path):
    result = run("compare", "--variants", "paper", "--resamples", 100, "-o", tmp_path, "--quiet")
    assert result.output == ""


def test_files_of_the_user_are_tasks(tmp_path):
    rows = [f"{i % 5}\tthe number {i}\tnumber {i * i % 7}" for i in range(40)]
    (tmp_path / "mine.tsv").write_text("score\tsentence1\tsentence2\n" + "\n".join(rows))
    tasks = f"default,{tmp_path / 'mine.tsv'}"
    run("compare", "--tasks", tasks, "--variants", "cos,recos", "--resamples", 100, "-o", tmp_path)
    found = Comparison.load(tmp_path / "results.json")
    assert found.task_names == ["packaged pairs", "mine"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--variants", "cosine"], "variants: expected one of recos"),
        (["--tasks", "nothing"], "tasks: expected 'sts', 'default'"),
        (["./nothing.npy"], "expected a file or folder, found none"),
        (["--corpus", "nothing.txt"], "expected a text file, one text a line, found none"),
    ],
)
def test_errors_are_one_line(tmp_path, arguments, told):
    result = run("compare", *arguments, "-o", tmp_path / "out", code=1)
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_real_scores_of_the_seven_sets_are_those_that_are_published():
    """The figures of the results that `benchmarks/compare.py` makes from the weights."""
    path = Path(__file__).parents[1] / "benchmarks" / "results" / "compare.json"
    results = json.loads(path.read_text("utf-8"))["results"]
    published = results["scores"]["all-MiniLM-L6-v2"]
    truth = {
        "cos": [72.37, 80.60, 75.60, 85.39, 78.99, 82.03, 77.58],
        "recos": [72.38, 80.59, 75.60, 85.39, 78.98, 82.03, 77.58],
    }
    for variant, figures in truth.items():
        np.testing.assert_allclose([100 * x for x in published[variant]], figures, atol=0.02)
    gains = {
        variant: {np.sign(gain["estimate"]) for gain in found if gain["significant"]}
        for variant, found in results["gains"]["all-MiniLM-L6-v2"].items()
    }
    assert gains["recos"] == gains["decos"] == set()  # as README says
    assert gains["whiten+cos"] == {-1}

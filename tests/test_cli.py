"""The command line gives what the library gives, names what is wrong, leaves nothing half done."""

import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import recos
from recos.cli.commands import app
from recos.cli.tables import open_vectors

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT and terminals of POSIX")


@pytest.fixture
def vectors():
    return np.random.default_rng(1).standard_normal((300, 16)).astype(np.float32)


@pytest.fixture
def folder(tmp_path, vectors, monkeypatch):
    """A folder to work in, with the vectors as .npy and as parquet with names."""
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", vectors)
    np.save("q.npy", vectors[:4])
    names = [f"row {i}" for i in range(len(vectors))]
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16)
    table = {"name": names, "v": fixed, "number": np.arange(len(vectors)) + 7}
    pq.write_table(pa.table(table), "v.parquet", row_group_size=70)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(x) for x in arguments])
    assert result.exit_code == code, result.output
    return result


def process(*arguments, patch=""):
    """Run a real process; ``patch`` is code that runs in it before the command."""
    code = f"{textwrap.dedent(patch)}\nfrom recos.cli import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def terminal(*arguments):
    """Return what a real process prints on a terminal."""
    import pty

    ours, its = pty.openpty()
    code = "from recos.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=its, stderr=its):
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError):  # Linux says so where the other side has closed
            while data := os.read(ours, 4096):
                shown += data
    os.close(ours)
    return re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", shown.decode())


def failed(*arguments, code=1):
    """Return the only line that a failing command prints."""
    result = run(*arguments, code=code)
    assert not result.stdout
    assert result.stderr.count("\n") == 1
    return result.stderr


# --- What it does --------------------------------------------------------------------------------


def test_processes_build_look_at_and_search_an_index(folder, vectors):
    built = process("index", "build", "v.npy", "A")
    assert built.returncode == 0
    assert "300" in built.stdout
    assert built.stderr == ""  # no progress where there is no terminal
    found = process("search", "A", "q.npy", "-k", "3")
    lines = [line.split("\t") for line in found.stdout.splitlines()]
    assert lines[0] == ["query", "rank", "id", "score"]
    truth = recos.topk(vectors[:4], vectors, 3)
    assert [int(line[2]) for line in lines[1:]] == truth.indices.ravel().tolist()
    np.testing.assert_array_equal(
        np.array([line[3] for line in lines[1:]], np.float32), truth.scores.ravel()
    )
    assert found.stderr == ""


@pytest.mark.parametrize("metric", recos.METRICS)
@pytest.mark.parametrize("source", ["v.npy", "v.parquet"])
def test_an_index_of_a_file_is_that_of_its_rows(folder, vectors, source, metric):
    run("index", "build", source, "A", "--metric", metric, "--dtype", "int8", "--keep", "-q")
    index = recos.Index.load("A")
    assert (index.dtype, index.metric.name) == ("int8", metric)
    found, truth = index.search(vectors[:4], 5), recos.topk(vectors[:4], vectors, 5, metric=metric)
    np.testing.assert_array_equal(found.indices, truth.indices)
    np.testing.assert_array_equal(found.scores, truth.scores)


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "chunked", "float16", "int8"])
def test_columns_of_all_kinds_of_lists_are_read(tmp_path, vectors, kind, monkeypatch):
    value = {"float16": pa.float16(), "int8": pa.int8()}.get(kind, pa.float32())
    rows = (10 * vectors).astype(kind if kind in ("float16", "int8") else np.float32)
    column = {"large_list": pa.large_list(value), "fixed": pa.list_(value, 16)}.get(
        kind, pa.list_(value)
    )
    size = 7 if kind == "chunked" else 300
    pq.write_table(pa.table({"v": pa.array(list(rows), column)}), tmp_path / "x.parquet",
                   row_group_size=size)  # fmt: skip
    monkeypatch.setattr("recos.cli.tables._BLOCK", 4096)
    source = open_vectors(tmp_path / "x.parquet")
    assert source.size == 300
    assert len(list(source.blocks())) > 1
    ids, read = source.whole()
    assert ids is None
    np.testing.assert_array_equal(read, rows)


@pytest.mark.parametrize(
    ("source", "ids", "first"),
    [
        ("v.parquet", "name", "row 0"),
        ("v.parquet", "number", 7),
        ("v.parquet", "ids.npy", 1000),
        ("v.npy", "ids.npy", 1000),
        ("v.npy", "ids.txt", "ä 0"),
    ],
)
def test_ids_come_from_a_column_or_a_file(folder, source, ids, first):
    np.save("ids.npy", np.arange(1000, 1300))
    (folder / "ids.txt").write_text("".join(f"ä {i}\n" for i in range(300)), "utf-8")
    run("index", "build", source, "A", "--ids", ids, "--quiet")
    found = json.loads(run("search", "A", "q.npy", "-k", 1, "--json").stdout)
    assert found["hits"][0]["id"] == first


def test_large_files_are_read_and_searched_in_blocks(folder, vectors, monkeypatch):
    monkeypatch.setattr("recos.cli.tables._BLOCK", 1000)
    run("index", "build", "v.npy", "A", "--ids", "v.parquet", "--quiet", code=1)
    run("index", "build", "v.npy", "A", "--quiet")
    run("search", "A", "v.npy", "-k", 2, "-o", "hits.parquet", "-q")
    table = pq.read_table("hits.parquet")
    truth = recos.topk(vectors, vectors, 2)
    assert table["query"].to_pylist() == np.repeat(np.arange(300), 2).tolist()
    assert table["rank"].to_pylist() == [1, 2] * 300
    assert table["id"].to_pylist() == truth.indices.ravel().tolist()
    np.testing.assert_array_equal(table["score"].to_numpy(), truth.scores.ravel())


def test_json_says_what_was_found(folder):
    run("index", "build", "v.parquet", "A", "--ids", "name", "--quiet")
    found = json.loads(run("search", "A", "q.npy", "-k", 2, "--json").stdout)
    assert {name: found[name] for name in found if name != "hits"} == {
        "index": "A", "metric": "recos", "queries": 4, "k": 2,
    }  # fmt: skip
    assert found["hits"][0] == {"query": 0, "rank": 1, "id": "row 0", "score": pytest.approx(1)}
    assert len(found["hits"]) == 8
    short = json.loads(run("search", "A", "q.npy", "-o", "hits.jsonl", "--json").stdout)
    assert (short["hits"], short["output"]) == (40, "hits.jsonl")
    lines = (folder / "hits.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == found["hits"][0]
    assert len(lines) == 40


def test_info_says_what_an_index_holds(folder, vectors):
    facts = json.loads(run("index", "build", "v.npy", "A", "--dtype", "int8", "--json").stdout)
    assert facts == json.loads(run("index", "info", "A", "--json").stdout)
    assert facts == {
        "index": "A", "rows": 300, "components": 16, "metric": "recos", "dtype": "int8",
        "scored_as": "int8", "ids": "whole numbers", "removed": 0, "segments": 1,
        "bytes": sum(path.stat().st_size for path in (folder / "A").glob("*.npy")),
    }  # fmt: skip
    index = recos.Index.load("A")
    index.remove([3])
    index.save("A")
    facts = json.loads(run("index", "info", "A", "--json").stdout)
    assert (facts["rows"], facts["removed"]) == (299, 1)
    assert "299" in run("index", "info", "A").stdout


@pytest.mark.parametrize("source", ["v.npy", "v.parquet"])
@pytest.mark.parametrize("how", [{"threshold": 0.6}, {"k": 1, "max_pairs": 20}])
def test_pairs_are_those_of_the_library(folder, vectors, source, how):
    names = {"threshold": "--threshold", "k": "-k", "max_pairs": "--max-pairs"}
    options = [x for name, value in how.items() for x in (names[name], value)]
    truth = recos.mine_pairs(vectors, **how)
    run("pairs", source, *options, "-o", "pairs.parquet")
    table = pq.read_table("pairs.parquet")
    assert len(truth.i) > 3
    for name, field in zip(("i", "j", "score"), truth, strict=True):
        np.testing.assert_array_equal(table[name].to_numpy(), field)
    named = json.loads(run("pairs", "v.parquet", *options, "--ids", "name", "--json").stdout)
    assert named["pairs"][0]["i"] == f"row {truth.i[0]}"


def test_no_queries_are_a_table_without_rows(folder):
    run("index", "build", "v.npy", "index", "-q")
    np.save("none.npy", np.empty((0, 16), np.float32))
    run("search", "index", "none.npy", "-o", "hits.parquet")
    table = pq.read_table("hits.parquet")
    assert (table.num_rows, table.column_names) == (0, ["query", "rank", "id", "score"])
    assert run("search", "index", "none.npy").stdout == "query\trank\tid\tscore\n"


def test_what_cannot_be_read_or_written_is_named(folder):
    run("index", "build", "v.npy", "index", "-q")
    np.save("narrow.npy", np.zeros((5, 0), np.float32))
    assert "narrow.npy: expected a matrix of numbers" in failed("index", "build", "narrow.npy", "x")
    (folder / "ids.txt").write_bytes(b"\xff\xfe\n" * 300)
    assert "ids.txt: expected text in UTF-8" in failed(
        "index", "build", "v.npy", "x", "--ids", "ids.txt"
    )
    np.save("wide.npy", np.zeros((2, 17), np.float32))
    assert "v[None, :]" not in failed("search", "index", "wide.npy")


def test_no_pairs_are_a_table_without_rows(folder):
    run("pairs", "v.npy", "--threshold", 1.5, "-o", "pairs.parquet")
    assert pq.read_table("pairs.parquet").shape == (0, 3)
    assert run("pairs", "v.npy", "--threshold", 1.5).stdout == "i\tj\tscore\n"


@posix
def test_a_terminal_shows_progress_and_a_grid(folder):
    shown = terminal("index", "build", "v.npy", "A")
    assert "Building" in shown
    assert "300 of 300 rows" in shown
    assert "Building" not in terminal("index", "build", "v.npy", "B", "--quiet")
    grid = terminal("search", "A", "q.npy", "-k", "1").splitlines()
    assert grid[0].split() == ["query", "rank", "id", "score"]
    assert grid[1].split() == ["0", "1", "0", "1.0000"]


def test_quiet_prints_results_alone(folder):
    assert run("index", "build", "v.npy", "A", "-q").output == ""
    assert run("index", "verify", "A", "-q").output == ""
    assert run("search", "A", "q.npy", "-o", "h.parquet", "-q").output == ""
    assert len(run("search", "A", "q.npy", "-k", 1, "-q").output.splitlines()) == 5


# --- What it refuses -----------------------------------------------------------------------------


def test_a_damaged_index_is_found(folder):
    run("index", "build", "v.npy", "A", "-q")
    assert "all 300 rows are as they were written" in run("index", "verify", "A").stdout
    path = next((folder / "A").glob("*-rows.npy"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert "not what was written; restore the folder" in failed("index", "verify", "A")
    path.write_bytes(data[:-1])
    assert "bytes, found" in failed("search", "A", "q.npy")


def test_bad_files_are_named(folder, vectors):
    (folder / "text.npy").write_text("not an array")
    (folder / "text.parquet").write_text("not a table")
    (folder / "cut.npy").write_bytes((folder / "v.npy").read_bytes()[:-1])
    np.save("flat.npy", vectors.ravel())
    np.save("narrow.npy", vectors[:, :3])
    np.save("few.npy", np.arange(3))
    vectors[200, 3] = np.nan
    np.save("nan.npy", vectors)
    pq.write_table(pa.table({"a": [[1.0], [2.0, 3.0]], "b": [[1.0], None]}), "odd.parquet")
    pq.write_table(pa.table({"a": [[1.0, 2.0], [None, 3.0]], "n": ["x", None]}), "null.parquet")
    pq.write_table(pa.table({"a": [1.0]}), "flat.parquet")
    for source, options, message in [
        ("none.npy", [], "none.npy: expected a file of vectors, found none"),
        ("v.csv", [], "v.csv: expected a .npy or .parquet file"),
        ("text.npy", [], "text.npy: expected an array that numpy.save wrote"),
        ("cut.npy", [], "cut.npy: expected an array that numpy.save wrote"),
        ("text.parquet", [], "text.parquet: expected a parquet file"),
        ("flat.npy", [], r"flat.npy: expected a matrix of numbers, .* got shape (4800,)"),
        ("nan.npy", [], "vectors: expected finite numbers, got NaN or infinity in row 200"),
        ("v.npy", ["--column", "v"], "expected no --column for a .npy file"),
        ("v.npy", ["--ids", "name"], "--ids: expected a file of ids, got 'name'"),
        ("v.npy", ["--ids", "few.npy"], "few.npy: expected 300 ids, one for each row, got 3"),
        ("v.parquet", ["--ids", "nam"], "one of the columns name, v, number, got 'nam'"),
        ("v.parquet", ["--column", "name"], "got 'name'; choose with --column among v"),
        ("odd.parquet", [], "got several; choose with --column among a, b"),
        ("odd.parquet", ["--column", "a"], "expected 1 numbers as in row 0, got 2 in row 1"),
        ("odd.parquet", ["--column", "b"], "expected 1 numbers as in row 0, got null in row 1"),
        ("null.parquet", [], "column a: expected numbers, got null in row 1"),
        ("flat.parquet", [], "expected a column of lists of numbers, got none; .* it has a"),
    ]:
        said = failed("index", "build", source, "A", *options)
        for part in message.split(" .* "):
            assert part in said
        assert not (folder / "A").exists()
    run("index", "build", "v.npy", "A", "-q")
    assert "expected a matrix of shape (n, 16), got shape (300, 3)" in failed(
        "search", "A", "narrow.npy"
    )


def test_other_folders_are_left_alone(folder):
    before = sorted(folder.iterdir())
    assert "found no recos-index.json" in failed("search", ".", "q.npy")
    assert "expected a new or empty folder or a saved index" in failed(
        "index", "build", "v.npy", "."
    )
    assert sorted(folder.iterdir()) == before
    run("index", "build", "v.npy", "A", "-q")
    assert "pass --replace" in failed("index", "build", "q.npy", "A")
    assert len(recos.Index.load("A")) == 300
    run("index", "build", "q.npy", "A", "--replace", "-q")
    assert len(recos.Index.load("A")) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "build", "v.npy", "A", "--metric", "dot"], "recos, cos, decos, tanimoto"),
        (["index", "build", "v.npy", "A", "--dtype", "int4"], "float32, float16, int8"),
        (["index", "build", "v.npy", "A", "--keep"], "needs --dtype int8"),
        (["pairs", "v.npy"], "exactly one of --threshold and -k"),
        (["pairs", "v.npy", "-k", "1", "--threshold", "1"], "exactly one of --threshold and -k"),
        (["search", "A", "q.npy", "-k", "0"], "'-k'"),
        (["nothing"], "nothing"),
    ],
)
def test_wrong_usage_leaves_with_2(folder, arguments, message):
    said = run(*arguments, code=2).stderr
    assert message in " ".join(said.replace("│", " ").split())


def test_a_wrong_output_is_refused_before_the_search(folder):
    run("index", "build", "v.npy", "A", "-q")
    assert "hits.csv: expected a .parquet or .jsonl file" in failed(
        "search", "A", "q.npy", "-o", "hits.csv"
    )
    assert "no/hits.jsonl: expected a folder no, found none" in failed(
        "search", "A", "q.npy", "-o", "no/hits.jsonl"
    )


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("typer", 2, "recos: typer is not installed"),
        ("pyarrow", 1, "recos: pyarrow is not installed, which parquet files need"),
    ],
)
def test_what_is_missing_is_said(folder, name, code, message):
    patch = f"import sys; sys.modules['{name}'] = None"
    found = process("pairs", "v.npy", "-k", "1", "-o", "x.parquet", patch=patch)
    assert found.returncode == code
    assert found.stderr == f"{message}: pip install 'recos[cli]'\n"


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"recos {recos.__version__}\n"


# --- Interrupts ----------------------------------------------------------------------------------

STOP = """
    import os, signal
    import recos.cli.tables, recos._files
    def stop_at_second(owner, name, number):
        real, calls = getattr(owner, name), []
        def wrapped(*arguments):
            calls.append(1)
            if len(calls) == 2:
                os.kill(os.getpid(), number)
            return real(*arguments)
        setattr(owner, name, wrapped)
    recos.cli.tables._BLOCK = 1000
"""
IN_BUILD = STOP + "    stop_at_second(recos._files.ArrayFile, 'append', signal.{})\n"
IN_WRITE = STOP + "    stop_at_second(recos.cli.tables.TableFile, 'write', signal.{})\n"


@posix
def test_an_interrupted_build_leaves_nothing_new(folder):
    found = process("index", "build", "v.npy", "A", patch=IN_BUILD.format("SIGINT"))
    assert (found.returncode, found.stderr) == (130, "recos: interrupted\n")
    assert not (folder / "A").exists()
    (folder / "A").mkdir()
    assert (
        process("index", "build", "v.npy", "A", patch=IN_BUILD.format("SIGINT")).returncode == 130
    )
    assert list((folder / "A").iterdir()) == []
    run("index", "build", "v.npy", "A", "-q")
    before = sorted((folder / "A").iterdir())
    again = ["index", "build", "q.npy", "A", "--replace"]
    assert process(*again, patch=IN_BUILD.format("SIGINT")).returncode == 130
    assert sorted((folder / "A").iterdir()) == before
    run("index", "verify", "A")


@posix
def test_a_killed_build_leaves_no_index_and_can_be_repeated(folder):
    found = process("index", "build", "v.npy", "A", patch=IN_BUILD.format("SIGKILL"))
    assert found.returncode < 0
    assert os.listdir("A")
    assert "found no recos-index.json" in failed("index", "info", "A")
    run("index", "build", "v.npy", "A", "-q")
    run("index", "verify", "A")


@posix
@pytest.mark.parametrize("output", ["hits.jsonl", "hits.parquet"])
def test_an_interrupted_search_leaves_the_file_that_was_there(folder, output):
    run("index", "build", "v.npy", "A", "-q")
    (folder / output).write_text("as before")
    before = sorted(folder.iterdir())
    found = process("search", "A", "v.npy", "-o", output, patch=IN_WRITE.format("SIGINT"))
    assert (found.returncode, found.stderr) == (130, "recos: interrupted\n")
    assert (folder / output).read_text() == "as before"
    assert sorted(folder.iterdir()) == before


def test_paper_lists_every_figure():
    found = json.loads(run("paper", "--json").stdout)
    assert found["summary"]["figures"] == len(found["figures"]) > 250
    by_name = {(row["place"], row["what"]): row for row in found["figures"]}
    assert by_name["Table 2", "Wilcoxon V"]["verdict"] == "contradicted"
    assert found["further"]["per model, Wilcoxon"]["statistic"] == 66
    printed = run("paper").stdout
    for row in found["figures"]:
        assert row["what"][:12] in printed
    assert "≤ 0.0002" in printed  # what a bootstrap of 10,000 draws can tell
    assert printed.partition("does not report")[2].count("one-sided") == 2
    assert "off by rounding" in printed.splitlines()[-1] + printed.splitlines()[-2]


# --- Diagnosis ------------------------------------------------------------------------------------


def test_diagnose_says_what_the_library_says(folder, vectors):
    vectors[[3, 200]] = 1e-12
    np.save("odd.npy", vectors)
    expected = recos.diagnose(vectors)
    found = json.loads(run("diagnose", "odd.npy", "--json", "--cosine", "0.8").stdout)
    assert found["advice"] == expected.advice
    assert sorted(row["row"] for row in found["odd_rows"]) == [3, 200]
    assert found["recos_threshold"] == expected.recos_threshold(0.8)
    printed = run("diagnose", "odd.npy", "--cosine", "0.8").stdout
    assert expected.advice in printed
    assert re.search(r"^ +200 .* near-constant and tiny, norm 4e-12$", printed, re.MULTILINE)
    assert "as reach cosine 0.8" in printed
    assert run("diagnose", "v.parquet", "--column", "v").stdout.startswith("rows ")


def test_diagnose_names_a_row_that_is_not_finite(folder, vectors):
    vectors[123, 4] = np.nan
    np.save("bad.npy", vectors)
    assert "got NaN or infinity in row 123" in failed("diagnose", "bad.npy")

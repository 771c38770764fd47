"""Tasks are what their files say, wherever they come from; what is wrong in them is named."""

import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from recos.evaluate._sets import KNOWN
from recos.evaluate.tasks import checksum, default_task, load_tasks

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("RECOS_DATA", ROOT.parent / "shared" / "data"))
ROWS = [("a cat", "the cat", 4.5), ("a dog", "rain", 0.25), ("one", "eins", 5.0), ("x", "y", 1.0)]


@pytest.fixture
def data(monkeypatch):
    """Let tasks be looked up in the folder of real data."""
    if not (DATA / "sts").is_dir():
        pytest.skip(f"needs the real data of RECOS_DATA, looked for in {DATA}")
    monkeypatch.setenv("RECOS_DATA", str(DATA))


def text_of(rows, mark):
    return "".join(mark.join(map(str, row)) + "\n" for row in rows)


def write_records(path, rows=ROWS):
    names = "sentence1", "sentence2", "score"
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
    path.write_bytes(gzip.compress("".join(lines).encode()))


def write_parquet(path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    first, second, scores = zip(*ROWS, strict=True)
    pq.write_table(pyarrow.table({"text1": first, "text2": second, "label": scores}), path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", text_of(ROWS, "\t")),
        (
            "t.tsv",
            "\ufeffSentence1\tsentence2\tscore\r\n" + text_of(ROWS, "\t").replace("\n", "\r\n"),
        ),
        ("t.tsv", "score\ttext1\ttext2\n" + text_of([(c, a, b) for a, b, c in ROWS], "\t")),
        ("t.tsv", "text1\ttext2\tlabel\n" + text_of(ROWS, "\t")),
        ("t.csv", 'sentence1,sentence2,label\n"a cat","the cat",4.5\n' + text_of(ROWS[1:], ",")),
        ("t.csv", text_of(ROWS, ",")),
        ("t.jsonl.gz", write_records),
        ("t.parquet", write_parquet),
    ],
)
def test_pairs_are_the_same_from_every_kind_of_file(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8") if isinstance(content, str) else content(path)
    [task] = load_tasks(path)
    first, second, scores = zip(*ROWS, strict=True)
    assert (task.name, task.kind, task.subsets) == ("t", "sts", None)
    assert (task.first, task.second, tuple(task.scores)) == (first, second, scores)
    assert task.facts["checksum"] == checksum(first[::-1], second[::-1], scores[::-1])


def test_separators_and_quotes_inside_texts_are_kept(tmp_path):
    odd = 'a "quoted" \u2028 word, 1', "\x85 next"
    path = tmp_path / "t.tsv"
    path.write_text(text_of([(*odd, 1), *ROWS], "\t"), encoding="utf-8")
    [task] = load_tasks(path)
    assert (task.first[0], task.second[0]) == odd
    path = tmp_path / "t.csv"
    path.write_text('"two\nlines, one cell",b,1\n' + text_of(ROWS, ","), encoding="utf-8")
    [task] = load_tasks(path)
    assert task.first[0] == "two\nlines, one cell"


def test_labels_make_pair_classification(tmp_path):
    path = tmp_path / "duplicates.tsv"
    path.write_text("a\tb\t1\nc\td\t0\ne\tf\t1\n")
    [task] = load_tasks(path)
    assert (task.kind, task.scores.tolist()) == ("pairs", [1, 0, 1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\t1\nc\td\n", r"t\.tsv, line 2: expected 3 columns .*, got 2"),
        ("a\tb\t1\nc\td\tgood\n", r"t\.tsv, line 2: expected a number in score, got 'good'"),
        ("a\tb\t1\n\nc\td\tnan\n", r"t\.tsv, line 3: expected a number in score, got 'nan'"),
        ("a\tb\t1\nc\t \t2\n", r"t\.tsv, line 2: expected a text in sentence2, got ' '"),
        ("text1\tscore\na\t1\n", r"line 2: .* sentence2 is not among sentence1, score"),
        ("a\tb\t1\nc\td\t2\n", r"t\.tsv: expected at least 3 pairs, got 2"),
        ("a\tb\t2\nc\td\t2\ne\tf\t2\n", r"t\.tsv: expected scores that differ, all 3 are 2"),
        (b"a\tb\t1\n\xff\td\t2\n", r"t\.tsv, line 2: expected UTF-8 text"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "t.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        load_tasks(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", 'a,b,1\n"c,d,2\n', r"t\.csv, line 2: not CSV"),
        ("t.jsonl", "{}\nnonsense\n", r"t\.jsonl, line 1: expected columns .* sentence1"),
        ("t.jsonl", "nonsense\n", r"t\.jsonl, line 1: expected a JSON object"),
        ("t.jsonl", "[1]\n", r"t\.jsonl, line 1: expected a JSON object, got list"),
        ("t.parquet", "nonsense", r"t\.parquet: expected a parquet file"),
        ("t.xlsx", "", r"t\.xlsx: expected one of \.tsv"),
    ],
)
def test_other_files_are_named_too(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_tasks(path)


def test_a_folder_of_files_is_one_task_each(tmp_path):
    for name in ("b.tsv", "a.csv"):
        (tmp_path / name).write_text(text_of(ROWS, "\t" if "tsv" in name else ","))
    (tmp_path / "notes.md").write_text("not a task")
    assert [task.name for task in load_tasks([tmp_path])] == ["a", "b"]
    with pytest.raises(ValueError, match=r"expected files of pairs .* found neither"):
        load_tasks(tmp_path.joinpath("empty").mkdir() or tmp_path / "empty")


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "small"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": "d1", "title": "Cats", "text": "purr"}, {"_id": 2, "text": "Dogs bark"}]
    queries = [{"_id": "q1", "text": "cat?"}, {"_id": "q2", "text": "fish?"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t2\t0\n")
    return folder


def test_retrieval_is_read_from_the_layout_of_beir(beir):
    [task] = load_tasks(beir)
    assert (task.name, task.kind) == ("small", "retrieval")
    assert task.corpus == {"d1": "Cats purr", "2": "Dogs bark"}
    assert task.queries == {"q1": "cat?"}  # no document is relevant for the other
    assert task.qrels == {"q1": {"d1": 2, "2": 0}}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("q9\td1\t1\n", r"test\.tsv, line 1: expected the id of a query .* got 'q9'"),
        ("q1\td9\t1\n", r"test\.tsv, line 1: expected the id of a document .* got 'd9'"),
        ("q1\td1\thigh\n", r"test\.tsv, line 1: expected query-id, corpus-id and a whole number"),
        ("q1\td1\t0\n", r"expected a relevant document for some query, found none"),
    ],
)
def test_wrong_judgements_are_named(beir, lines, message):
    (beir / "qrels" / "test.tsv").write_text(lines)
    with pytest.raises(ValueError, match=message):
        load_tasks(beir)


def test_missing_parts_of_retrieval_are_named(beir):
    (beir / "qrels" / "test.tsv").unlink()
    with pytest.raises(ValueError, match=r"found no qrels/test"):
        load_tasks(beir)
    (beir / "corpus.jsonl").write_text('{"_id": 1}\n')
    (beir / "qrels" / "test.tsv").write_text("q1\t1\t1\n")
    with pytest.raises(ValueError, match=r"corpus\.jsonl, line 1: expected _id and text, got _id"):
        load_tasks(beir)


def test_ids_and_columns_that_come_twice_are_named(beir, tmp_path):
    (beir / "corpus.jsonl").write_text('{"_id": 1, "text": "a"}\n{"_id": "1", "text": "b"}\n')
    with pytest.raises(ValueError, match=r"corpus\.jsonl, line 2: expected an _id for each text"):
        load_tasks(beir)
    (tmp_path / "x.tsv").write_text("sentence1\tsentence2\tscore\tscore\n" + "a\tb\t1\t2\n" * 4)
    with pytest.raises(ValueError, match=r"x\.tsv, line 1: .* different names, got 'score' twice"):
        load_tasks(tmp_path / "x.tsv")


def test_the_seven_sets_are_the_ones_that_were_checked(data):
    tasks = load_tasks("sts")
    assert [task.name for task in tasks] == list(KNOWN)
    assert [len(task.scores) for task in tasks] == [3108, 1500, 3750, 3000, 1186, 1379, 9927]
    assert all(task.facts["as_checked"] for task in tasks)
    assert all(task.facts["licence"] and task.facts["citation"] for task in tasks)
    assert set(tasks[-1].subsets) == {"train", "trial", "test"}
    assert load_tasks(["sick-r", "STSB"])[1].name == "STS-B"


def test_the_documentation_lists_the_sets_as_they_are():
    page = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    for name, known in KNOWN.items():
        hashes = f"`{known.revision[:12]}` | `{known.checksum[:12]}`"
        assert f"| {name} | `{known.repository}` | {hashes} | {known.licence} |\n" in page


def test_retrieval_is_found_by_name(data):
    [task] = load_tasks("cranfield")
    assert (len(task.corpus), len(task.queries)) == (1400, 225)


def test_an_altered_copy_is_seen(tmp_path, monkeypatch):
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts" / "sts12.tsv").write_text(text_of(ROWS, "\t"))
    monkeypatch.setenv("RECOS_DATA", str(tmp_path))
    [task] = load_tasks("sts12")
    assert task.facts["as_checked"] is False
    with pytest.raises(ValueError, match=r"expected 'sts', 'default', one of STS12.* got 'sts99'"):
        load_tasks("sts99")
    with pytest.raises(ValueError, match="expected at least one, got none"):
        load_tasks([])


def test_the_packaged_pairs_are_graded_over_the_whole_scale():
    task = default_task()
    assert len(set(task.first)) == len(task.first) == 150
    assert set(np.floor(task.scores)) == {0, 1, 2, 3, 4, 5}
    assert np.all(np.unique(task.subsets, return_counts=True)[1] == 10)
    assert "not a benchmark" in task.facts["source"]


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers for one file of one revision of every data set, as the hub does."""

    def answer(self):
        revision, name, body = KNOWN["STS12"].revision, "test.jsonl.gz", self.server.body
        file = {"type": "file", "path": name, "size": len(body), "oid": "1" * 40}
        if "/tree/" in self.path:
            body = json.dumps([file]).encode()
        elif self.path.startswith("/api/"):
            found = {"id": "any/pairs", "sha": revision, "siblings": [{"rfilename": name}]}
            body = json.dumps(found).encode()
        known = revision in self.path or self.path in ("/", "/api/datasets/any/pairs/revision/main")
        self.send_response(200 if known else 404)
        self.send_header("X-Repo-Commit", revision)
        self.send_header("ETag", '"' + "e" * 40 + '"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_GET = do_HEAD = answer

    def log_message(self, *_):
        pass


def load_in_subprocess(tmp_path, endpoint, code):
    env = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    env |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hub"), "RECOS_DATA": str(tmp_path)}
    env |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1"}
    run = [sys.executable, "-c", code]
    return subprocess.run(run, env=env, capture_output=True, text=True, check=False)


def test_sets_come_from_the_hub_and_then_from_its_cache(tmp_path):
    pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    write_records(tmp_path / "body")
    code = (
        "from recos.evaluate.tasks import load_tasks\n"
        "for task in load_tasks(['STS12', 'any/pairs']):\n"
        "    print(task.name, len(task.first), task.facts['revision'])"
    )
    revision = KNOWN["STS12"].revision
    expected = f"STS12 4 {revision}\npairs 4 {revision}\n"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.body = (tmp_path / "body").read_bytes()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        online = load_in_subprocess(tmp_path, endpoint, code)
        server.shutdown()
    assert online.stdout == expected, online.stderr
    assert load_in_subprocess(tmp_path, endpoint, code).stdout == expected
    gone = load_in_subprocess(tmp_path / "new", endpoint, code).stderr
    assert "mteb/sts12-sts: could not be read from the Hugging Face hub" in gone
    assert "download test.jsonl.gz" in gone
    assert "as sts/sts12.jsonl.gz" in gone


def test_a_header_of_other_names_is_told_what_to_be(tmp_path):
    (tmp_path / "x.tsv").write_text("one\ttwo\tgrade\n" + "a\tb\t1\n" * 4)
    told = r"line 1: .* got 'grade'; if this is a header, name its columns sentence1, sentence2, sc"
    with pytest.raises(ValueError, match=told):
        load_tasks(tmp_path / "x.tsv")

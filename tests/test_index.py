"""An index: the same results as topk, whatever was added, removed, stored, saved and loaded."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import recos
from recos import METRICS, DamagedIndexError, Index, topk

STORED = [("float32", False), ("float16", False), ("int8", False), ("int8", True)]

all_metrics = pytest.mark.parametrize("metric", METRICS)
all_stored = pytest.mark.parametrize(("dtype", "keep"), STORED)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def stored_rows(index):
    """Return the rows of an index as they are stored."""
    parts = [
        segment.corpus.store.exact(np.flatnonzero(segment.alive)) for segment in index._segments
    ]
    return np.concatenate(parts)


def assert_same(found, expected, ids=None):
    np.testing.assert_array_equal(found.scores, expected.scores)
    indices = expected.indices if ids is None else ids[expected.indices]
    np.testing.assert_array_equal(found.indices, indices)


# --- Results ------------------------------------------------------------------------------------


@all_metrics
@all_stored
def test_results_are_those_of_topk_over_what_is_stored(metric, dtype, keep):
    X, Q = normal(1, 700, 33), normal(2, 9, 33)
    index = Index(X, metric=metric, dtype=dtype, keep=keep)
    assert_same(index.search(Q, 7), topk(Q, stored_rows(index), 7, metric=metric))
    if dtype == "float32" or keep:
        np.testing.assert_array_equal(stored_rows(index), X)


@all_stored
@pytest.mark.parametrize("kind", ["heavy", "one-hot", "negative", "constant", "ties", "zeros"])
def test_results_are_exact_on_awkward_rows(dtype, keep, kind):
    rng = np.random.default_rng(3)
    X = {
        "heavy": lambda: rng.standard_t(2, (500, 12)),
        "one-hot": lambda: np.eye(12)[rng.integers(0, 12, 500)] * rng.choice([-1, 2], (500, 1)),
        "negative": lambda: -np.abs(rng.standard_normal((500, 12))),
        "constant": lambda: 1 + 1e-4 * rng.standard_normal((500, 12)),
        "ties": lambda: rng.integers(-1, 2, (500, 12)),
        "zeros": lambda: rng.standard_normal((500, 12)) * rng.integers(0, 2, (500, 1)),
    }[kind]().astype(np.float32)
    Q = np.concatenate([X[:5], -X[:5]])
    index = Index(X, dtype=dtype, keep=keep)
    assert_same(index.search(Q, 10), topk(Q, stored_rows(index), 10))


def test_float64_queries_are_not_rounded():
    X, Q = normal(1, 50, 8), np.random.default_rng(2).standard_normal((3, 8))
    found = Index(X).search(Q, 5)
    assert found.scores.dtype == np.float64
    assert_same(found, topk(Q, X.astype(np.float64), 5))


def test_the_array_kind_of_queries_comes_back():
    torch = pytest.importorskip("torch")
    X, Q = normal(1, 50, 8), normal(2, 3, 8)
    found = Index(X).search(torch.from_numpy(Q), 5)
    assert isinstance(found.scores, torch.Tensor)
    assert found.indices.dtype == torch.int64
    assert_same(recos.TopK(*(x.numpy() for x in found)), topk(Q, X, 5))
    named = Index(X, ids=[f"n{i}" for i in range(50)]).search(torch.from_numpy(Q), 1)
    assert isinstance(named.indices, np.ndarray)


@pytest.mark.parametrize("memory", ["64KiB", "1MiB", "256MiB"])
@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_results_do_not_depend_on_memory_and_threads(monkeypatch, memory, threads):
    X, Q = normal(1, 3000, 24), normal(2, 40, 24)
    expected = topk(Q, X, 6)
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    assert_same(Index(X).search(Q, 6, memory=memory), expected)


def test_an_index_keeps_a_copy():
    X = normal(1, 20, 4)
    index, before = Index(X), X.copy()
    X[:] = 0
    assert_same(index.search(before[:2], 3), topk(before[:2], before, 3))


def test_nothing_is_found_in_nothing():
    index = Index(np.empty((0, 5), np.float32))
    assert len(index) == 0
    assert index.search(np.ones((3, 5)), 4).indices.shape == (3, 0)
    index.add(np.ones((2, 5)))
    assert index.search(np.ones((3, 5)), 4).indices.tolist() == [[0, 1]] * 3
    assert index.search(np.empty((0, 5)), 4).scores.shape == (0, 2)


# --- Ids and filters ------------------------------------------------------------------------------


def test_ids_take_the_place_of_row_numbers():
    X, Q = normal(1, 60, 6), normal(2, 4, 6)
    for ids in (np.arange(60) * 3 + 7, np.array([f"row {i}" for i in range(60)])):
        index = Index(X, ids=ids)
        np.testing.assert_array_equal(index.ids, ids)
        assert_same(index.search(Q, 5), topk(Q, X, 5), ids)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@all_stored
def test_a_filter_leaves_the_best_of_the_rest(share, dtype, keep):
    X, Q = normal(1, 800, 16), normal(2, 5, 16)
    index = Index(X, ids=np.arange(800) + 1000, dtype=dtype, keep=keep)
    mask = np.random.default_rng(3).random(800) < share
    expected = topk(Q, stored_rows(index), 5, where=mask)
    assert_same(index.search(Q, 5, where=mask), expected, index.ids)
    assert_same(index.search(Q, 5, where=index.ids[mask]), expected, index.ids)
    assert_same(index.search(Q, 5, where=[*index.ids[mask].tolist(), 5]), expected, index.ids)


def test_a_filter_follows_rows_that_were_removed():
    X, Q = normal(1, 100, 6), normal(2, 3, 6)
    index = Index(X)
    index.add(normal(3, 50, 6))
    index.remove(np.arange(0, 120, 3))
    mask = np.random.default_rng(4).random(len(index)) < 0.5
    expected = topk(Q, stored_rows(index), 4, where=mask)
    assert_same(index.search(Q, 4, where=mask), expected, index.ids)


# --- Growing and shrinking ------------------------------------------------------------------------


@all_stored
def test_added_and_removed_rows_are_as_if_built_so(dtype, keep):
    X, Q = normal(1, 300, 10), normal(2, 6, 10)
    index = Index(X[:120], dtype=dtype, keep=keep)
    for start in range(120, 300, 60):
        index.add(X[start : start + 60])
    assert index.remove([5, 130, 131, 299]) == 4
    assert index.remove([5, 999]) == 0
    left = np.setdiff1d(np.arange(300), [5, 130, 131, 299])
    assert len(index) == len(left)
    whole = Index(X[left], dtype=dtype, keep=keep)
    assert_same(index.search(Q, 8), whole.search(Q, 8), left)


def test_removed_ids_can_be_added_again():
    index = Index(normal(1, 5, 3), ids=list("abcde"))
    index.remove("b")
    index.add(normal(2, 1, 3), ids=["b"])
    assert index.ids.tolist() == ["a", "c", "d", "e", "b"]


def test_default_ids_go_on_after_those_that_were_removed():
    index = Index(normal(1, 5, 3))
    index.remove([4])
    index.add(normal(2, 2, 3))
    assert index.ids.tolist() == [0, 1, 2, 3, 5, 6]


def test_a_search_sees_the_index_before_or_after_an_addition():
    X, Q = normal(1, 400, 8), normal(2, 3, 8)
    states = [topk(Q, X[:size], 5) for size in range(100, 401, 50)]
    index, wrong, done = Index(X[:100]), [], threading.Event()

    def look():
        while not done.is_set():
            found = index.search(Q, 5)
            if not any(np.array_equal(found.scores, state.scores) for state in states):
                wrong.append(found)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(100, 400, 50):
        index.add(X[start : start + 50])
        time.sleep(0.02)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert_same(index.search(Q, 5), states[-1])


# --- On disk --------------------------------------------------------------------------------------


@all_metrics
@all_stored
@pytest.mark.parametrize("mmap", [True, False])
def test_what_is_saved_is_loaded(tmp_path, metric, dtype, keep, mmap):
    X, Q = normal(1, 200, 9), normal(2, 5, 9)
    index = Index(X, ids=[f"é{i}" for i in range(200)], metric=metric, dtype=dtype, keep=keep)
    index.remove(["é3", "é4"])
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index", mmap=mmap)
    loaded.verify()
    assert_same(loaded.search(Q, 6), index.search(Q, 6))
    assert repr(loaded) == repr(index)
    np.testing.assert_array_equal(loaded.ids, index.ids)


def test_changes_of_a_loaded_index_are_saved_beside_what_is_there(tmp_path):
    X, Q = normal(1, 400, 9), normal(2, 5, 9)
    Index(X[:300]).save(tmp_path / "index")
    before = set(os.listdir(tmp_path / "index"))
    index = Index.load(tmp_path / "index")
    index.add(X[300:])
    index.remove([0])
    index.save(tmp_path / "index")
    assert before - {"recos-index.json"} <= set(os.listdir(tmp_path / "index"))
    again = Index.load(tmp_path / "index")
    assert len(again) == 399
    assert_same(again.search(Q, 5), topk(Q, X[1:], 5), np.arange(1, 400))
    again.add(X[:1])
    assert again.ids[-1] == 400


def test_many_removed_rows_and_many_segments_are_written_anew(tmp_path):
    X, Q = normal(1, 400, 9), normal(2, 5, 9)
    index = Index(X[:40])
    for start in range(40, 400, 40):
        index.add(X[start : start + 40])
    index.save(tmp_path / "index")
    assert len(Index.load(tmp_path / "index")._segments) == 1
    index.remove(np.arange(0, 400, 2))
    index.save(tmp_path / "index")
    again = Index.load(tmp_path / "index")
    assert len(again._segments[0].ids) == 200
    assert_same(again.search(Q, 5), topk(Q, X[1::2], 5), np.arange(1, 400, 2))
    again.remove(again.ids)
    again.save(tmp_path / "index")
    assert len(Index.load(tmp_path / "index")) == 0


def test_an_index_without_rows_is_saved_and_loaded(tmp_path):
    Index(np.empty((0, 5), np.float32)).save(tmp_path / "index")
    index = Index.load(tmp_path / "index")
    index.verify()
    assert len(index) == 0
    index.add(np.ones((2, 5)))
    assert index.search(np.ones((1, 5)), 3).indices.tolist() == [[0, 1]]


def test_saving_elsewhere_copies_everything(tmp_path):
    X, Q = normal(1, 60, 5), normal(2, 3, 5)
    index = Index(X)
    index.save(tmp_path / "a")
    Index.load(tmp_path / "a").save(tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    loaded = Index.load(tmp_path / "b")
    loaded.verify()
    assert_same(loaded.search(Q, 4), topk(Q, X, 4))


@all_stored
@pytest.mark.parametrize("with_ids", [False, True])
def test_an_index_is_built_from_blocks(tmp_path, dtype, keep, with_ids):
    X, Q = normal(1, 500, 9), normal(2, 5, 9)
    ids = np.arange(500) * 2
    blocks = ((ids[i : i + 70], X[i : i + 70]) for i in range(0, 500, 70))
    if not with_ids:
        blocks = (rows for _, rows in blocks)
    index = Index.build(tmp_path / "index", blocks, dtype=dtype, keep=keep)
    index.verify()
    expected = Index(X, ids=ids if with_ids else None, dtype=dtype, keep=keep)
    assert_same(index.search(Q, 5), expected.search(Q, 5))
    assert_same(Index.load(tmp_path / "index").search(Q, 5), expected.search(Q, 5))


def test_what_is_kept_beside_the_vectors_is_small(tmp_path):
    for width, dtype in ((384, "float32"), (768, "float32"), (768, "float16"), (1024, "int8")):
        folder = tmp_path / f"{width} {dtype}"
        Index(normal(1, 20_000, width), dtype=dtype).save(folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        vectors = 20_000 * width * (1 if dtype == "int8" else np.dtype(dtype).itemsize)
        assert size < 1.06 * vectors + 500_000, (width, dtype, size / vectors)


# --- Damage ---------------------------------------------------------------------------------------


def saved(folder):
    index = Index(normal(1, 40, 6), ids=[f"r{i}" for i in range(40)])
    index.remove(["r7"])
    index.save(folder)
    return sorted(path for path in folder.iterdir())


def assert_found(folder, what):
    try:
        Index.load(folder).verify()
    except (DamagedIndexError, FileNotFoundError):
        return
    pytest.fail(f"not found: {what}", pytrace=False)


def test_every_flipped_bit_is_found(tmp_path):
    for path in saved(tmp_path):
        good = path.read_bytes()
        places = (
            range(len(good)) if len(good) < 1500 else random.Random(1).sample(range(len(good)), 300)
        )
        for place in places:
            for bit in range(8) if place < 40 else [place % 8]:
                damaged = bytearray(good)
                damaged[place] ^= 1 << bit
                path.write_bytes(damaged)
                assert_found(tmp_path, f"bit {bit} of byte {place} of {path.name}")
        path.write_bytes(good)
    Index.load(tmp_path).verify()


def test_every_truncation_is_found_and_missing_files_are(tmp_path):
    for path in saved(tmp_path):
        good = path.read_bytes()
        for size in {
            0,
            1,
            len(good) // 2,
            len(good) - 1,
            *random.Random(1).sample(range(len(good)), 20),
        }:
            path.write_bytes(good[:size])
            assert_found(tmp_path, f"{path.name} cut to {size}")
        path.write_bytes(good + b"\0")
        assert_found(tmp_path, f"{path.name} with a byte more")
        path.unlink()
        assert_found(tmp_path, f"{path.name} missing")
        path.write_bytes(good)
    Index.load(tmp_path).verify()


def test_damage_says_which_file_and_what_to_do(tmp_path):
    saved(tmp_path)
    [rows] = tmp_path.glob("*-rows.npy")
    rows.write_bytes(rows.read_bytes()[:-1])
    with pytest.raises(
        DamagedIndexError, match=r"-rows\.npy: expected \d+ bytes, found \d+; restore"
    ):
        Index.load(tmp_path)


def test_newer_formats_and_foreign_folders_are_named(tmp_path):
    saved(tmp_path / "index")
    manifest = tmp_path / "index" / "recos-index.json"
    content = json.loads(manifest.read_bytes())
    manifest.write_bytes(
        json.dumps(content | {"version": 3}, sort_keys=True, indent=1).encode() + b"\n"
    )
    with pytest.raises(ValueError, match=r"expected format version 2 or older, got 3; install"):
        Index.load(tmp_path / "index")
    with pytest.raises(FileNotFoundError, match=r"expected a folder that Index\.save"):
        Index.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"expected a folder that Index\.save"):
        Index.load(tmp_path / "nothing")
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(FileExistsError, match=r"expected a new or empty folder .* found 'index'"):
        Index(normal(1, 3, 3)).save(tmp_path)


KILLED = """
import sys
import numpy as np
import recos
folder, X = sys.argv[1], np.random.default_rng(1).standard_normal((3000, 16), dtype=np.float32)
index = recos.Index.load(folder)
recos.paired(X[:20], X[:20])
print("go", flush=True)
while True:
    if len(index) < 3000:
        index.add(X[len(index) : len(index) + 500])
    else:
        index.remove(np.setdiff1d(index.ids, index.ids[:500]))
    index.save(folder)
"""


def test_a_killed_process_leaves_the_state_before_or_after(tmp_path):
    """Each state is a whole number of blocks of rows, and answers as these rows do."""
    X, Q = np.random.default_rng(1).standard_normal((3000, 16), dtype=np.float32), normal(2, 3, 16)
    Index(X[:500]).save(tmp_path / "index")
    kills = random.Random(5)
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "index")],
            stdout=subprocess.PIPE,
        )
        assert process.stdout.readline() == b"go\n"
        time.sleep(kills.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        index = Index.load(tmp_path / "index")
        index.verify()
        assert len(index) % 500 == 0
        expected = topk(Q, X[: len(index)], 4)
        np.testing.assert_array_equal(index.search(Q, 4).scores, expected.scores)


# --- Bad input ------------------------------------------------------------------------------------


def test_bad_vectors_ids_and_filters_are_refused():
    X = normal(1, 4, 3)
    bad = X.copy()
    bad[2, 1] = np.nan
    cases = [
        (lambda: Index(bad), r"^vectors: expected finite numbers, got NaN or infinity in row 2"),
        (lambda: Index(X[0]), r"^vectors: expected a matrix of shape \(rows, components\)"),
        (lambda: Index(X, dtype="int4"), r"^dtype: expected one of float32, float16, int8"),
        (
            lambda: Index(X * 1e6, dtype="float16"),
            r"^vectors: expected numbers that fit into",
        ),
        (lambda: Index(X, metric="l2"), r"^metric: expected one of recos, cos, decos, tanimoto"),
        (lambda: Index(X, ids=[1, 2, 3]), r"^ids: expected 4 whole numbers or texts, got shape"),
        (lambda: Index(X, ids=[1, 2, 2, 3]), r"^ids: expected each once, got .*2.* twice"),
        (lambda: Index(X, ids=[0.5, 1, 2, 3]), r"^ids: expected 4 whole numbers or texts"),
        (lambda: Index(X).add(X[:, :2]), r"^vectors: expected 3 components as the others, got 2"),
        (
            lambda: Index(X).add(X[:1], ids=[2]),
            r"^ids: expected new ones, got .*2.*, which",
        ),
        (lambda: Index(X).add(X[:1], ids=["a"]), r"^ids: expected whole numbers as the index has"),
        (
            lambda: Index(X, ids=list("abcd")).add(X),
            r"^ids: expected names as the index has",
        ),
        (lambda: Index(X).search(X[:, :2]), r"^queries: expected a matrix of shape \(n, 3\)"),
        (lambda: Index(X).search(X[0]), r"^queries: expected a matrix of shape \(n, 3\)"),
        (lambda: Index(X).search(bad), r"^queries: expected finite numbers, got .* in row 2"),
        (lambda: Index(X).search(X, 0), r"^k: expected a whole number of at least 1, got 0"),
        (lambda: Index(X).search(X, where=[True]), r"^where: expected a mask of 4 bools"),
        (
            lambda: Index(X).search(X, where=["a"]),
            r"^where: expected a mask or ids, which are",
        ),
        (lambda: Index(X).search(X, memory="x"), r"^memory: expected a positive number of bytes"),
        (lambda: Index(X).verify(), r"^verify: expected an index that was saved or loaded"),
    ]
    for call, match in cases:
        with pytest.raises(ValueError, match=match):
            call()


def test_bad_blocks_are_refused(tmp_path):
    X = normal(1, 4, 3)
    cases = [
        ([], r"^blocks: expected at least one block with rows, got none"),
        ([np.empty((0, 3))], r"^blocks: expected at least one block with rows, got none"),
        ([(np.array([1, 2, 3, 4]), X), X], r"^blocks: expected ids with each block or with none"),
        ([(np.array([1, 2, 3, 3]), X)], r"^ids: expected each once, got .*3.* twice"),
    ]
    for blocks, match in cases:
        with pytest.raises(ValueError, match=match):
            Index.build(tmp_path / "index", blocks)
        assert not (tmp_path / "index" / "recos-index.json").exists()


def test_files_of_others_are_never_taken_for_those_of_an_index(tmp_path):
    np.save(tmp_path / "recos-vectors.npy", normal(1, 5, 3))
    with pytest.raises(FileExistsError, match=r"found 'recos-vectors.npy'"):
        Index(normal(1, 5, 3)).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["recos-vectors.npy"]

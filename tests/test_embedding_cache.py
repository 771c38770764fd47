"""Vectors are encoded once, kept block by block, and the same after a kill as without one."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from recos.evaluate.cache import embed
from recos.evaluate.encoders import default_encoder, find_encoder
from recos.evaluate.ready import ReadyVectors

TEXTS = [f"text {number}" for number in range(10)]

SLOW = """
import sys, time
import numpy as np
from recos.evaluate.cache import embed
from recos.evaluate.encoders import find_encoder

def slow(texts):
    with open("log.txt", "a") as log:
        log.write("".join(text + chr(10) for text in texts))
    time.sleep(float(sys.argv[1]))
    return [[len(text), hash(text) % 1, sum(map(ord, text))] for text in texts]

slow.cache_key = "1"
texts = [f"text {number}" for number in range(60)]
np.save("rows.npy", embed(find_encoder(slow), texts, cache="cache", block=5))
"""


class Counting:
    """An encoder that counts what it is asked for."""

    name, facts, identity = "counting", {}, "counting 1"

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text), sum(map(ord, text))] for text in texts], np.float64)


def test_each_text_is_encoded_once_whatever_the_order(tmp_path):
    texts = ["b", "a", "b", "c"]
    expected = Counting().encode(texts).astype(np.float32)
    first = Counting()
    assert np.array_equal(embed(first, texts, cache=tmp_path, block=2), expected)
    assert first.asked == [["b", "a"], ["c"]]
    second = Counting()
    found = embed(second, ["d", *texts[::-1]], cache=tmp_path)
    assert np.array_equal(found[1:], expected[::-1])
    assert found.dtype == np.float32
    assert second.asked == [["d"]]


def test_another_model_and_an_unknown_one_share_nothing(tmp_path):
    other = Counting()
    embed(other, TEXTS, cache=tmp_path)
    other.identity = "counting 2"
    embed(other, TEXTS, cache=tmp_path)
    other.identity = None
    embed(other, TEXTS, cache=tmp_path)
    assert len(other.asked) == 3
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cut_off_or_altered_block_is_encoded_again(tmp_path):
    expected = embed(Counting(), TEXTS, cache=tmp_path, block=4)
    first, second, _ = sorted(tmp_path.rglob("*.npy"))
    first.write_bytes(first.read_bytes()[:-3])
    content = bytearray(second.read_bytes())
    content[-2] ^= 1
    second.write_bytes(content)
    again = Counting()
    assert np.array_equal(embed(again, TEXTS, cache=tmp_path), expected)
    assert 6 <= sum(map(len, again.asked)) <= 8
    whole = Counting()
    embed(whole, TEXTS, cache=tmp_path)
    assert whole.asked == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_after_a_kill_no_finished_block_is_encoded_again(tmp_path):
    def start(seconds):
        return subprocess.Popen([sys.executable, "-c", SLOW, seconds], cwd=tmp_path)

    with start("0.2") as process:
        while len(list(tmp_path.rglob("*.npy"))) < 3:
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finished = len(list(tmp_path.rglob("*.npy")))
    log = tmp_path / "log.txt"
    before = log.read_text().splitlines()
    assert 5 * finished <= len(before) < 60
    log.write_text("")
    with start("0") as process:
        assert process.wait(60) == 0
    expected = [f"text {number}" for number in range(5 * finished, 60)]
    assert log.read_text().splitlines() == expected
    rows = np.load(tmp_path / "rows.npy")
    assert rows[:, 2].tolist() == [sum(map(ord, f"text {number}")) for number in range(60)]


def test_blocks_are_the_same_bytes_after_a_kill_as_without_one(tmp_path):
    # What is left is cut where it would have been: padding may not move the last digits.
    for name, stop in (("whole", 10), ("resumed", 4)):
        embed(Counting(), TEXTS[:stop], cache=tmp_path / name, block=2)
    embed(Counting(), TEXTS, cache=tmp_path / "resumed", block=2)
    names = [
        {path.name for path in (tmp_path / name).rglob("*.npy")} for name in ("whole", "resumed")
    ]
    assert names[0] == names[1]
    assert len(names[0]) == 5


def test_progress_says_what_is_encoded_and_how_long_it_takes(capsys):
    embed(Counting(), TEXTS, progress=True, block=5)
    assert capsys.readouterr().err.endswith("Encoding with counting: 100 %, 0 s left \n")
    embed(Counting(), TEXTS, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda texts: [[1.0, np.nan]] * len(texts),
            r"NaN or infinity for the text 'text 0' and 9",
        ),
        (lambda texts: [[(t == "text 7" and np.inf) or 0.0] for t in texts], r"the text 'text 7'$"),
        (lambda texts: [[1e300]] * len(texts), "expected finite numbers"),
        (
            lambda texts: [[1.0]] * 3,
            r"expected 10 rows of numbers, one for each text, got shape \(3",
        ),
        (lambda texts: [1.0] * len(texts), r"got shape \(10,\)"),
        (lambda texts: [["x"]] * len(texts), r"expected 10 rows of numbers"),
    ],
)
def test_vectors_that_are_none_are_named_with_their_text(tmp_path, function, message):
    function.cache_key = "1"
    with pytest.raises(ValueError, match=message):
        embed(find_encoder(function), TEXTS, cache=tmp_path)
    assert list(tmp_path.rglob("*.npy")) == []


def test_ready_vectors_are_taken_in_their_order(tmp_path):
    np.save(tmp_path / "v.npy", np.arange(4).reshape(4, 1))
    ready = ReadyVectors(tmp_path / "v.npy")
    assert embed(ready, ["a", "b", "a", "c"], cache=tmp_path / "cache").tolist() == [
        [0],
        [1],
        [2],
        [3],
    ]
    assert not (tmp_path / "cache").exists()
    with pytest.raises(ValueError, match="expected at least one, got none"):
        embed(ready, [])


def test_the_default_encoder_is_cached_by_its_file(tmp_path):
    rows = embed(default_encoder(), TEXTS, cache=tmp_path)
    assert np.array_equal(embed(default_encoder(), TEXTS, cache=tmp_path), rows)
    assert len(list(tmp_path.rglob("*.npy"))) == 1

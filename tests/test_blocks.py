"""Memory budgets, threads over blocks, and progress."""

import os
import sys
import threading
import time

import pytest
from threadpoolctl import threadpool_info

from recos import _blocks
from recos._blocks import Progress, count_threads, parse_memory, run_blocks, spans

# --- Memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        (1, 1),
        (4096, 4096),
        ("7", 7),
        ("12 B", 12),
        ("1kB", 10**3),
        ("1.5kB", 1500),
        ("2MB", 2 * 10**6),
        ("3GB", 3 * 10**9),
        ("1TB", 10**12),
        ("1KiB", 2**10),
        ("256MiB", 2**28),
        (" 0.5 gib ", 2**29),
        ("1tib", 2**40),
    ],
)
def test_budgets_are_bytes_or_texts(memory, size):
    assert parse_memory(memory) == size


@pytest.mark.parametrize(
    "memory",
    [
        *("", "MiB", "-1MiB", "1 2MiB", "1PB", "1e3", "0.4", "0GB", "inf", "1MiB!", ".5GB"),
        *(0, -5, True, None, 1.5, b"1MiB", ["1MiB"]),
    ],
)
def test_bad_budgets_say_what_is_expected_and_what_came(memory):
    with pytest.raises(ValueError, match=r"^memory: expected a positive number") as error:
        parse_memory(memory)
    assert str(error.value) == (
        "memory: expected a positive number of bytes or a text such as '256MiB' or '2GB', "
        f"got {memory!r}"
    )


# --- Threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "count"), [("1", 1), (" 3 ", 3), ("64", 64)])
def test_the_environment_sets_the_number_of_threads(monkeypatch, text, count):
    monkeypatch.setenv("RECOS_NUM_THREADS", text)
    assert count_threads() == count


@pytest.mark.parametrize("text", [None, "", "  "])
def test_by_default_there_are_as_many_threads_as_cpus(monkeypatch, text):
    monkeypatch.delenv("RECOS_NUM_THREADS", raising=False)
    if text is not None:
        monkeypatch.setenv("RECOS_NUM_THREADS", text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    assert count_threads() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert count_threads() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_threads() == 1


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "²"])
def test_bad_numbers_of_threads_are_refused(monkeypatch, text):
    monkeypatch.setenv("RECOS_NUM_THREADS", text)
    message = f"^RECOS_NUM_THREADS: expected a whole number of at least 1, got '{text}'$"
    with pytest.raises(ValueError, match=message):
        count_threads()


# --- Spans --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "step", "start", "ends"),
    [
        (0, 3, 0, []),
        (3, 3, 0, [(0, 3)]),
        (7, 3, 0, [(0, 3), (3, 6), (6, 7)]),
        (7, 10, 0, [(0, 7)]),
        (7, 3, 5, [(5, 7)]),
        (9, 2, 4, [(4, 6), (6, 8), (8, 9)]),
        (5, 2, 5, []),
        (5, 2, 8, []),
    ],
)
def test_spans_are_consecutive(size, step, start, ends):
    assert [(part.start, part.stop) for part in spans(size, step, start)] == ends


# --- Blocks -------------------------------------------------------------------------------------


@pytest.fixture(params=["1", "2", "5"])
def threads(request, monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", request.param)
    return int(request.param)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_results_come_in_the_order_of_the_jobs(threads):
    def work(job):
        time.sleep(0.001 * (10 - job))  # the last jobs are done first
        return job * job

    assert run_blocks(work, range(10)) == [job * job for job in range(10)]


@pytest.mark.parametrize("jobs", [[], ["only"]])
def test_no_thread_is_started_for_fewer_than_two_jobs(threads, jobs):
    names = run_blocks(lambda job: (job, threading.current_thread()), jobs)
    assert names == [(job, threading.current_thread()) for job in jobs]


def test_no_more_threads_are_used_than_allowed(threads):
    lock, running, most = threading.Lock(), 0, 0

    def work(job):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    run_blocks(work, range(12))
    assert most <= threads


def test_several_threads_work_at_the_same_time(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "3")
    meeting = threading.Barrier(3, timeout=30)
    assert sorted(run_blocks(lambda job: meeting.wait(), range(3))) == [0, 1, 2]


def test_the_first_job_in_order_that_raises_raises(threads):
    def work(job):
        if job in (3, 4, 8):
            time.sleep(0.01 if job == 3 else 0)
            raise ValueError(f"job {job}")

    with pytest.raises(ValueError, match=r"^job 3$"):
        run_blocks(work, range(9))


def test_every_finished_job_advances_the_progress(threads):
    progress = Progress(6, "jobs", show=False)
    run_blocks(lambda job: None, range(6), progress)
    assert progress.done == 6


def test_blas_has_one_thread_inside_and_as_many_as_before_outside(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    before = blas_threads()
    inside = run_blocks(lambda job: blas_threads(), range(4))
    assert before
    assert inside == [[1] * len(before)] * 4
    assert blas_threads() == before


def test_blas_is_restored_after_an_error(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        run_blocks(lambda job: 1 // job, range(4))
    assert blas_threads() == before


def test_blas_is_restored_by_the_last_of_overlapping_callers():
    with _blocks.single_threaded_blas():
        pass  # the controller is there
    before = blas_threads()
    first, second = _blocks.single_threaded_blas(), _blocks.single_threaded_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == [1] * len(before)
    second.__exit__(None, None, None)
    assert blas_threads() == before


# --- Progress -----------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_a_line_says_how_far_the_work_is_and_how_long_it_takes(clock, capsys):
    progress = Progress(4, "sorting", show=True)
    written = []
    for _ in range(4):
        clock.now += 10
        progress.advance()
        written.append(capsys.readouterr().err)
    assert written == [
        "\rsorting:  25 %, 30 s left ",
        "\rsorting:  50 %, 20 s left ",
        "\rsorting:  75 %, 10 s left ",
        "\rsorting: 100 %, 0 s left \n",
    ]


def test_lines_are_drawn_a_few_times_a_second_and_at_the_end(clock, capsys):
    progress = Progress(101, "x", show=True)
    lines = 0
    for step in range(100):
        clock.now += 0.01
        progress.advance()
        line = capsys.readouterr().err
        lines += bool(line)
        assert bool(line) or step > 0
    assert 4 <= lines <= 7
    progress.advance()
    assert capsys.readouterr().err.endswith("100 %, 0 s left \n")


@pytest.mark.parametrize("show", [None, False])
def test_nothing_is_shown_where_nobody_looks(clock, capsys, show):
    progress = Progress(2, "x", show=show)
    for _ in range(2):
        clock.now += 100
        progress.advance()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_work_that_takes_more_than_two_seconds(clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress(3, "x")
    clock.now += 1.9
    progress.advance()
    assert capsys.readouterr().err == ""
    clock.now += 0.1
    progress.advance()
    assert capsys.readouterr().err == "\rx:  66 %, 1 s left "
    progress.advance()
    assert capsys.readouterr().err == "\rx: 100 %, 0 s left \n"


def test_a_terminal_shows_nothing_of_quick_work(clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress(3, "x")
    for _ in range(3):
        clock.now += 0.6
        progress.advance()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_nothing_that_was_declined(clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Progress(1, "x", show=False)
    clock.now += 60
    progress.advance()
    assert capsys.readouterr().err == ""


def test_progress_needs_no_terminal_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    for show in (None, True, False):
        Progress(1, "work", show).advance()

"""Memory budgets, one thread pool over blocks, and progress.

Work is cut into blocks that fit the caches and the caller's budget. The blocks run on threads of
our own: NumPy releases the GIL while it sorts and multiplies, and BLAS is held to one thread
meanwhile, so that two schedulers never compete for the same cores.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

Job = TypeVar("Job")
Result = TypeVar("Result")

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def parse_memory(memory: str | int) -> int:
    """Return a memory budget in bytes.

    Examples
    --------
    >>> parse_memory("8MiB"), parse_memory("1.5 kB"), parse_memory(4096)
    (8388608, 1500, 4096)
    """
    if isinstance(memory, (int, np.integer)) and not isinstance(memory, bool) and memory > 0:
        return int(memory)
    text = memory.strip() if isinstance(memory, str) else ""
    unit = text.lstrip("0123456789.")
    number = text[: len(text) - len(unit)]
    sound = number[:1].isdigit() and number[-1:].isdigit() and number.count(".") <= 1
    size = int(float(number) * _UNITS.get(unit.strip().lower(), 0)) if sound else 0
    if size <= 0:
        raise ValueError(
            f"memory: expected a positive number of bytes or a text such as '256MiB' or '2GB', "
            f"got {memory!r}"
        )
    return size


def count_threads() -> int:
    """Return how many threads to use: ``RECOS_NUM_THREADS``, or the CPUs this process may use."""
    text = os.environ.get("RECOS_NUM_THREADS", "").strip()
    if not text:
        affinity = getattr(os, "sched_getaffinity", None)  # absent on macOS and Windows
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"RECOS_NUM_THREADS: expected a whole number of at least 1, got {text!r}")
    return int(text)


def spans(size: int, step: int, start: int = 0) -> list[slice]:
    """Cut ``range(start, size)`` into consecutive slices of at most ``step``."""
    return [slice(at, min(at + step, size)) for at in range(start, size, step)]


def run_blocks(
    work: Callable[[Job], Result], jobs: Sequence[Job], progress: Progress | None = None
) -> list[Result]:
    """Return ``[work(job) for job in jobs]``, computed on threads.

    The first job in order that raises, raises here.
    """
    threads = min(count_threads(), len(jobs))
    advance = progress.advance if progress is not None else _ignore
    if not jobs:
        return []
    if threads <= 1:
        with single_threaded_blas():
            return [_after(work(job), advance) for job in jobs]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - keeps start-up short

    with single_threaded_blas(), ThreadPoolExecutor(threads, "recos") as pool:
        return [_after(result, advance) for result in pool.map(work, jobs)]


def _ignore() -> None:
    pass


def _after(result: Result, advance: Callable[[], None]) -> Result:
    advance()
    return result


_blas_lock = threading.Lock()
_blas_users = 0
_blas_limit: Any = None
_blas_controller: Any = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread while anyone is inside; the last one out restores it.

    threadpoolctl's own limits are process-wide and restore what they found, so overlapping callers
    would leave BLAS at one thread for good. Counting the users avoids that.
    """
    global _blas_users, _blas_limit, _blas_controller  # noqa: PLW0603 - the setting is process-wide
    with _blas_lock:
        if _blas_controller is None:
            from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - keeps start-up short

            _blas_controller = ThreadpoolController()
        if _blas_users == 0:
            _blas_limit = _blas_controller.limit(limits=1, user_api="blas")
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_limit.restore_original_limits()


class Progress:
    """One line on a terminal that says how far the work is and how long it will take.

    ``show=None`` shows it only on a terminal, and only once the work has taken two seconds.
    """

    def __init__(self, total: int, label: str, show: bool | None = None) -> None:
        self.total, self.label, self.done = total, label, 0
        terminal = sys.stderr is not None and sys.stderr.isatty()  # services have no stderr
        self.visible = terminal if show is None else show and sys.stderr is not None
        self.started = time.monotonic()
        self.next_line = self.started + (2.0 if show is None else 0.0)
        self.written = False

    def advance(self) -> None:
        """Count one finished step and redraw the line a few times a second."""
        self.done += 1
        now = time.monotonic()
        last = self.done >= self.total
        if not self.visible or (now < self.next_line and not (last and self.written)):
            return
        self.next_line = now + 0.2
        self.written = True
        left = (now - self.started) * (self.total - self.done) / self.done
        line = f"\r{self.label}: {100 * self.done // self.total:3d} %, {left:.0f} s left "
        sys.stderr.write(line + ("\n" if last else ""))
        sys.stderr.flush()

"""Interleaved timing, and what a result must say about where it was measured."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "recos",
    "numpy",
    "numba",
    "scikit-learn",
    "numkong",
    "torch",
    "jax",
    "cupy-cuda13x",
    "faiss-cpu",
    "usearch",
)


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, list]:
    """Return the seconds of each contender in each round; a round runs all of them in turn.

    The pause lets the threads of a BLAS that has just finished stop spinning: they would slow the
    next contender, whoever that is.
    """
    for run in contenders.values():
        run()
    seconds: dict[str, list] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            time.sleep(0.2)
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: dict[str, list], name: str, base: str) -> float:
    """Return the median over the rounds of the time of one over that of the other."""
    return float(np.median(np.divide(seconds[name], seconds[base])))


def save(name: str, results: object) -> None:
    """Write results with the machine, the versions and the commit they were measured on."""
    text = json.dumps({"environment": environment(), "results": results}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def environment() -> dict[str, object]:
    """Return the machine, the versions and the commit."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """Return the commit; a machine that has a copy without history is told it by a variable."""
    if told := os.environ.get("RECOS_COMMIT"):
        return told
    git = ["git", "-C", str(Path(__file__).parent)]
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run(
        [*git, "status", "--porcelain", "../src"], capture_output=True, text=True, check=False
    )
    return commit.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    facts = dict(line.split("\t", 1) for line in lines if "\t" in line)
    name, family, model = (
        facts.get(key, "").strip("\t: ") for key in ("model name", "cpu family\t", "model")
    )
    avx512 = ", AVX-512" if "avx512f" in facts.get("flags", "") else ""
    return f"{name} (model {model or family}{avx512})"

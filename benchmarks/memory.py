"""Peak memory beside the inputs, as the operating system counts it; writes results/memory.json.

Each case runs in a process of its own: warm up (compiled kernels, BLAS's own buffers), reset the
kernel's high-water mark, run, read it.
"""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from harness import save

import recos

# Rows of 384 numbers: all results together are many times the budget.
BUDGETS = {"8MiB": 5_000, "32MiB": 10_000, "256MiB": 20_000, "1GiB": 40_000}
WIDTH = 384


def main() -> None:
    """Measure each function under each budget and save the peaks."""
    results = []
    for name in ("iter_pairwise", "above"):
        for budget in BUDGETS:
            command = [sys.executable, __file__, name, budget]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            results.append(json.loads(run.stdout))
            print(results[-1], flush=True)
    save("memory", results)


def measure(name: str, budget: str) -> dict[str, object]:
    """Return the peak of one call over what the process held before it."""
    X = np.random.default_rng(0).standard_normal((BUDGETS[budget], WIDTH), dtype=np.float32)
    run(name, X[:3000], "256MiB")
    before = reset_peak()
    run(name, X, budget)
    peak = status("VmHWM") - before
    size = recos._blocks.parse_memory(budget)
    return {"function": name, "budget": budget, "peak MiB": peak / 2**20, "share": peak / size}


def run(name: str, X: np.ndarray, budget: str) -> None:
    """Run one of the functions to its end."""
    if name == "iter_pairwise":
        for _ in recos.iter_pairwise(X, memory=budget):
            pass
    else:
        assert not list(recos.above(X, threshold=0.9, memory=budget))


def reset_peak() -> int:
    ctypes.CDLL(None).malloc_trim(0)  # what was freed must not hide what is taken next
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status("VmRSS")


def status(field: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:])))
    else:
        main()

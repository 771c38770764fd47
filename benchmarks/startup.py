"""Time to import recos against NumPy; writes results/startup.json."""

import subprocess
import sys

import numpy as np
from harness import save

HEAVY = ("numba", "torch", "scipy", "jax", "threadpoolctl", "array_api_compat")


def main() -> None:
    """Import each package in a fresh interpreter, in turn, and save the ratio."""
    seconds: dict[str, list[float]] = {"numpy": [], "recos": []}
    for _ in range(31):
        for package, found in seconds.items():
            found.append(import_seconds(package))
    ratios = np.divide(seconds["recos"], seconds["numpy"])
    save("startup", {"recos over numpy": float(np.median(ratios)), "loads": loaded()})


def import_seconds(package: str) -> float:
    """Return how long a fresh interpreter takes to import a package."""
    code = f"import time; a = time.perf_counter(); import {package}; print(time.perf_counter() - a)"
    return float(subprocess.check_output([sys.executable, "-c", code], text=True))


def loaded() -> list[str]:
    """Return which heavy packages importing recos loads."""
    code = f"import recos, sys; print(*({{*{HEAVY}}} & {{*sys.modules}}))"
    return subprocess.check_output([sys.executable, "-c", code], text=True).split()


if __name__ == "__main__":
    main()

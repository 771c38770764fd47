"""Time to import recos, and to a first result, over that of NumPy; writes results/startup.json."""

import subprocess
import sys

from harness import ratio, save

HEAVY = ("numba", "torch", "scipy", "jax", "threadpoolctl", "array_api_compat")


def main() -> None:
    """Start each in a fresh interpreter, in turn, and save the ratios."""
    starts = {
        "numpy": "import numpy",
        "import": "import recos",
        "first call": "import recos; recos.recos([1.0, 2.0], [3.0, 4.0])",
    }
    seconds: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(31):
        for name, code in starts.items():
            seconds[name].append(start_seconds(code))
    found = {name: ratio(seconds, name, "numpy") for name in ("import", "first call")}
    print(found)
    save("startup", {f"{name} over numpy": x for name, x in found.items()} | {"loads": loaded()})


def start_seconds(code: str) -> float:
    """Return how long a fresh interpreter takes to run some code."""
    code = f"import time; a = time.perf_counter(); {code}; print(time.perf_counter() - a)"
    return float(subprocess.check_output([sys.executable, "-c", code], text=True))


def loaded() -> list[str]:
    """Return which heavy packages importing recos loads."""
    code = f"import recos, sys; print(*({{*{HEAVY}}} & {{*sys.modules}}))"
    return subprocess.check_output([sys.executable, "-c", code], text=True).split()


if __name__ == "__main__":
    main()

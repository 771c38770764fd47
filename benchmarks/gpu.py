"""Run on CUDA devices: agreement with NumPy and times; writes results/gpu.json.

Times are absolute, in milliseconds, medians of CUDA events. Libraries that are missing are named.
"""

import json
import sys

import numpy as np
import torch
from harness import environment

import recos

WIDTH = 768


def main(path: str) -> None:
    """Measure errors and times and write them to a file."""
    place = environment() | {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    results = {"error": measure_errors(), "ms": measure_times()}
    print(json.dumps(results, indent=2))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"environment": place, "results": results}, file, indent=2)
        file.write("\n")


def measure_errors() -> dict[str, float]:
    """Return the largest difference from NumPy's float64 result, for each kind of array."""
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((300, WIDTH)).astype(np.float32) for _ in range(2))
    found = {}
    for kind, (send, fetch) in array_kinds().items():
        found[kind] = 0.0
        for name in recos.METRICS:
            wide = X.astype(np.float64), Y.astype(np.float64)
            for function in (recos.paired, recos.pairwise):
                result = function(send(X), send(Y), metric=name)
                assert type(result) is type(send(X)), f"{kind} came back as {type(result)}"
                exact = function(*wide, metric=name)
                found[kind] = max(found[kind], float(np.abs(fetch(result) - exact).max()))
    return found


def array_kinds() -> dict[str, tuple]:
    """Return how to send NumPy arrays to the device, and how to fetch them back."""
    import cupy
    import jax

    device = jax.devices("gpu")[0]
    return {
        "PyTorch float32": (lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy()),
        "PyTorch float64": (
            lambda x: torch.from_numpy(x).cuda().double(),
            lambda x: x.cpu().numpy(),
        ),
        "CuPy float32": (cupy.asarray, cupy.asnumpy),
        "JAX float32": (lambda x: jax.device_put(x, device), np.asarray),
    }


def measure_times() -> dict[str, float]:
    """Return the times of PyTorch on the device, beside what they are made of."""
    torch.manual_seed(0)
    X, Y = (torch.randn(16384, WIDTH, device="cuda") for _ in range(2))
    U, V = (torch.randn(1_000_000, WIDTH, device="cuda") for _ in range(2))
    return {
        "X @ Y.T, 16384 x 16384 x 768, float32": milliseconds(lambda: X @ Y.T),
        "pairwise recos, the same": milliseconds(lambda: recos.pairwise(X, Y, memory="64GiB")),
        "pairwise cos, the same": milliseconds(
            lambda: recos.pairwise(X, Y, metric="cos", memory="64GiB")
        ),
        "torch.sort of both, 1M x 768": milliseconds(lambda: (U.sort(-1), V.sort(-1))),
        "paired recos, the same": milliseconds(lambda: recos.paired(U, V)),
        "paired cos, the same": milliseconds(lambda: recos.paired(U, V, metric="cos")),
    }


def milliseconds(run, rounds: int = 9) -> float:
    """Return the median time of a call on the device."""
    times = []
    for _ in range(rounds + 2):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return float(np.median(times[2:]))


if __name__ == "__main__":
    main(*sys.argv[1:])

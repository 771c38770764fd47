"""Ratios of time against the peers, two threads, float32; writes results/speed.json."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numkong
import numpy as np
import paper
import torch
from harness import interleaved, ratio, save
from sklearn.metrics.pairwise import cosine_similarity
from threadpoolctl import threadpool_limits

import recos

THREADS = 2


def main() -> None:
    """Measure everything and save it."""
    os.environ["RECOS_NUM_THREADS"] = str(THREADS)
    rng = np.random.default_rng(0)
    measures = (measure_pairwise, measure_cosine, measure_paired, measure_torch, measure_above)
    results = {}
    with threadpool_limits(THREADS):
        for measure in measures:
            results[measure.__name__.removeprefix("measure_")] = found = measure(rng)
            print(measure.__name__, found, flush=True)
    save("speed", results)


def gaussian(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def measure_pairwise(rng) -> dict[str, float]:
    """Compare all pairs, 4000 x 4000 of 768 numbers, with the bare matrix product."""
    X, Y = gaussian(rng, 4000, 768), gaussian(rng, 4000, 768)
    rows = 8  # of the paper's code, which takes the same time for each
    seconds = interleaved(
        {
            "product": lambda: X @ Y.T,
            "recos": lambda: recos.pairwise(X, Y),
            "recos, X with itself": lambda: recos.pairwise(X),
            "decos": lambda: recos.pairwise(X, Y, metric="decos"),
            "tanimoto": lambda: recos.pairwise(X, Y, metric="tanimoto"),
            "paper": lambda: paper.broadcast(X[:rows], Y),
        },
        rounds=15,
    )
    ratios = {name: ratio(seconds, name, "product") for name in seconds if name != "product"}
    ratios["paper"] *= len(X) / rows
    return ratios


def measure_cosine(rng) -> dict[str, float]:
    """Compare the cosine of all pairs with the product, scikit-learn and NumKong."""
    X, Y = gaussian(rng, 4000, 768), gaussian(rng, 4000, 768)
    seconds = interleaved(
        {
            "product": lambda: X @ Y.T,
            "recos": lambda: recos.pairwise(X, Y, metric="cos"),
            "scikit-learn": lambda: cosine_similarity(X, Y),
            "numkong": partial(numkong_angulars, X, Y),
        },
        rounds=15,
    )
    return {name: ratio(seconds, name, "product") for name in seconds if name != "product"}


def numkong_angulars(X, Y):
    """Return angular distances by NumKong's packed kernels, on as many threads as the others."""
    packed = numkong.dots_pack(Y, "float32")
    edges = np.linspace(0, len(X), THREADS + 1).astype(int)
    out = numkong.zeros((len(X), len(Y)), dtype="float64")
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [
            pool.submit(
                numkong.angulars_packed, X, packed, out=out, start_row=int(a), end_row=int(b)
            )
            for a, b in pairwise(edges)
        ]
        for job in jobs:
            job.result()
    return out


def measure_paired(rng) -> dict[str, float]:
    """Compare aligned rows, 100,000 of 768 numbers, with sorting both and the paper's loop."""
    X, Y = gaussian(rng, 100_000, 768), gaussian(rng, 100_000, 768)
    rows = 2000
    seconds = interleaved(
        {
            "sorting both": lambda: (np.sort(X, axis=1), np.sort(Y, axis=1)),
            "recos": lambda: recos.paired(X, Y),
            "cos": lambda: recos.paired(X, Y, metric="cos"),
            "paper": lambda: paper.loop(X[:rows], Y[:rows]),
        }
    )
    return {
        "recos over sorting both": ratio(seconds, "recos", "sorting both"),
        "cos over sorting both": ratio(seconds, "cos", "sorting both"),
        "paper over recos": ratio(seconds, "paper", "recos") * len(X) / rows,
    }


def measure_torch(rng) -> dict[str, float]:
    """Compare aligned rows as PyTorch tensors on the CPU with NumPy arrays."""
    X, Y = gaussian(rng, 100_000, 768), gaussian(rng, 100_000, 768)
    tensors = torch.from_numpy(X), torch.from_numpy(Y)
    seconds = interleaved(
        {"numpy": lambda: recos.paired(X, Y), "torch": lambda: recos.paired(*tensors)}
    )
    return {"torch over numpy": ratio(seconds, "torch", "numpy")}


def measure_above(rng) -> dict[str, float]:
    """Compare the pairs over 0.9 among 100,000 rows of 384 numbers with the blocked product."""
    X = gaussian(rng, 100_000, 384)
    X[50_000:50_100] = X[:100] + 0.1 * gaussian(rng, 100, 384)
    hits = []
    seconds = interleaved(
        {
            "product": lambda: blocked_product(X),
            "recos": lambda: hits.append(len(list(recos.above(X, threshold=0.9)))),
            "cos": lambda: list(recos.above(X, threshold=0.9, metric="cos")),
        },
        rounds=5,
    )
    found = {f"{name} over product": ratio(seconds, name, "product") for name in ("recos", "cos")}
    return found | {"hits": hits[0]}


def blocked_product(X, block: int = 4096):
    """Multiply the blocks on and above the diagonal, as large as suits BLAS, and keep none."""
    out = np.empty((block, block), np.float32)
    for i in range(0, len(X), block):
        for j in range(i, len(X), block):
            left, right = X[i : i + block], X[j : j + block]
            np.matmul(left, right.T, out=out[: len(left), : len(right)])


if __name__ == "__main__":
    main()

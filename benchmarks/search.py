"""Exact search against FAISS and the bare product, two threads; writes results/search.json."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import faiss
import numpy as np
import real
from harness import interleaved, ratio, save
from memory import status
from threadpoolctl import threadpool_limits

import recos
from recos.metrics import exact_scores

THREADS = 2
K = 10


def main() -> None:
    """Measure everything and save it."""
    os.environ["RECOS_NUM_THREADS"] = str(THREADS)
    faiss.omp_set_num_threads(THREADS)
    measures = (
        measure_exact,
        measure_one,
        measure_mapped,
        measure_build,
        measure_start,
        measure_sets,
    )
    results = {}
    with threadpool_limits(THREADS):
        for measure in measures:
            name = measure.__name__.removeprefix("measure_")
            results[name] = found = measure(np.random.default_rng(0))
            print(name, found, flush=True)
    save("search", results)


def gaussian(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def blocked_product(queries, X, block: int = 4096):
    """Multiply queries with blocks of rows, and keep none."""
    out = np.empty(len(queries) * block, np.float32)
    for start in range(0, len(X), block):
        some = X[start : start + block]
        np.matmul(queries, some.T, out=out[: len(queries) * len(some)].reshape(len(queries), -1))


def units(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def flat(X):
    """Return FAISS's exact cosine index."""
    index = faiss.IndexFlatIP(X.shape[1])
    index.add(units(X))
    return index


def measure_exact(rng) -> dict[str, float]:
    """Compare the exact top 10 of 1000 queries among 200,000 rows of 768 numbers."""
    X, queries = gaussian(rng, 200_000, 768), gaussian(rng, 1000, 768)
    index, peer, looked_for = recos.Index(X), flat(X), units(queries)
    seconds = interleaved(
        {
            "recos": lambda: index.search(queries, K),
            "FAISS": lambda: peer.search(looked_for, K),
            "product": lambda: blocked_product(queries, X),
        },
        rounds=5,
    )
    return {
        "recos over FAISS cosine": ratio(seconds, "recos", "FAISS"),
        "recos over product": ratio(seconds, "recos", "product"),
        "FAISS cosine over product": ratio(seconds, "FAISS", "product"),
    }


def measure_one(rng) -> dict[str, float]:
    """Compare one query at a time among 200,000 rows of 768 numbers."""
    X, queries = gaussian(rng, 200_000, 768), gaussian(rng, 1, 768)
    peer, looked_for = flat(X), units(queries)
    stored = {
        "float32": recos.Index(X),
        "int8 and float32": recos.Index(X, dtype="int8", keep=True),
    }
    del X
    seconds = interleaved(
        {"FAISS": lambda: peer.search(looked_for, K)}
        | {name: lambda index=index: index.search(queries, K) for name, index in stored.items()},
        rounds=21,
    )
    return {f"{name} over FAISS cosine": ratio(seconds, name, "FAISS") for name in stored}


def measure_mapped(rng) -> dict[str, float]:
    """Compare 1000 queries among 1,000,000 rows of 384 numbers on disk with the same in memory."""
    folder, queries = Path(tempfile.mkdtemp()), gaussian(rng, 1000, 384)
    try:
        blocks = (gaussian(rng, 50_000, 384) for _ in range(20))
        recos.Index.build(folder / "index", blocks)
        mapped = recos.Index.load(folder / "index")
        mapped.search(queries, K)
        peak = peak_beside_files(lambda: mapped.search(queries, K, memory="256MiB"))
        held = recos.Index.load(folder / "index", mmap=False)
        seconds = interleaved(
            {"mapped": lambda: mapped.search(queries, K), "held": lambda: held.search(queries, K)},
            rounds=5,
        )
        size = sum(path.stat().st_size for path in (folder / "index").iterdir())
    finally:
        shutil.rmtree(folder)
    return {
        "mapped over in memory": ratio(seconds, "mapped", "held"),
        "peak over budget": peak / 2**28,
        "storage beyond the vectors": size / (4 * 384 * 10**6) - 1,
    }


def peak_beside_files(run) -> int:
    """Return the most memory that a call takes, without the pages of mapped files."""

    seen, done, before = [], threading.Event(), status("RssAnon")

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return max(seen) - before


def measure_build(rng) -> dict[str, float]:
    """Compare making an index of 200,000 rows with sorting the rows once, on one thread."""
    found = {}
    for width in (384, 768):
        X = gaussian(rng, 200_000, width)
        seconds = interleaved(
            {"index": lambda X=X: recos.Index(X), "sorting": lambda X=X: np.sort(X, axis=1)},
            rounds=5,
        )
        found[f"index over sorting, {width} numbers"] = ratio(seconds, "index", "sorting")
        found[f"rows a second, {width} numbers"] = len(X) / float(np.median(seconds["index"]))
    return found


def measure_start(rng) -> dict[str, float]:
    """Return what a first search takes more than later ones, with compiled kernels and without."""
    code = """
import sys, time, numpy as np
if sys.argv[1] == "alone":  # Numba imports both where they are installed
    sys.modules["scipy"] = sys.modules["coverage"] = None
import recos
X = np.random.default_rng(0).standard_normal((20000, 128), dtype=np.float32)
index = None
times = []
for _ in range(4):
    start = time.perf_counter()
    index = index or recos.Index(X)
    index.search(X[:10], 10)
    times.append(time.perf_counter() - start)
print(times[0] - min(times[1:]))
"""
    runs = {  # the first fills the cache
        "without compiled kernels": "beside",
        "with them": "beside",
        "with them, where SciPy is not installed": "alone",
    }
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(5):
        with tempfile.TemporaryDirectory() as cache:
            for name, how in runs.items():
                run = subprocess.run(
                    [sys.executable, "-c", code, how],
                    env=os.environ | {"NUMBA_CACHE_DIR": cache},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                found[name].append(float(run.stdout))
    return {f"{name}, seconds": float(np.median(seconds)) for name, seconds in found.items()}


def measure_sets(rng) -> dict[str, dict[str, float]]:
    """Return for each set how many rows are scored, and compare results and time."""
    return {name: measure_set(*make(rng)) for name, make in SETS.items()}


def measure_set(X, queries) -> dict[str, float]:
    """Compare results with float64 brute force for each metric, and the time with FAISS."""
    found: dict[str, float] = {}
    for metric in recos.METRICS.values():
        index = recos.Index(X, metric=metric)
        result, scored = index._search(queries, K, None, "256MiB", False)
        found[f"{metric.name}: scored, median"] = float(np.median(scored))
        found[f"{metric.name}: scored, most"] = int(scored.max())
        found[f"{metric.name}: queries that differ"] = differing(metric, X, queries[:50], result)
    index, peer, looked_for = recos.Index(X), flat(X), units(queries)
    seconds = interleaved(
        {"recos": lambda: index.search(queries, K), "FAISS": lambda: peer.search(looked_for, K)},
        rounds=5,
    )
    return found | {"recos over FAISS cosine": ratio(seconds, "recos", "FAISS")}


def differing(metric, X, queries, result) -> int:
    """Return how many queries have another top 10 by float64 brute force."""
    count = 0
    for i, query in enumerate(queries):
        scores = np.concatenate(
            [
                exact_scores(metric, np.repeat(query[None], len(some), axis=0), some)
                for some in np.array_split(X, max(1, len(X) // 20_000))
            ]
        )
        best = np.lexsort((np.arange(len(X)), -scores))[:K]
        count += not np.array_equal(best, result.indices[i])
    return count


def split(X, queries: int = 500):
    """Return all rows but some, and these as queries."""
    return X[queries:], X[:queries]


def clustered(rng, n, d):
    centres = rng.standard_normal((200, d), dtype=np.float32)
    return centres[rng.integers(0, 200, n)] + 0.3 * gaussian(rng, n, d)


def rogue(rng, n, d):
    X = gaussian(rng, n, d)
    X[:, 7] += 20
    return X


SETS = {
    "MiniLM, enlarged": lambda rng: split(real.enlarged(real.minilm(), 100_000)),
    "GloVe, enlarged": lambda rng: split(real.enlarged(real.glove(), 100_000)),
    "normal": lambda rng: split(gaussian(rng, 100_000, 384)),
    "Student t, 3 degrees": lambda rng: split(rng.standard_t(3, (100_000, 384)).astype(np.float32)),
    "clustered": lambda rng: split(clustered(rng, 100_000, 384)),
    "one large coordinate": lambda rng: split(rogue(rng, 100_000, 384)),
}

if __name__ == "__main__":
    main()

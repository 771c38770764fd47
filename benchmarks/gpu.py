"""Run on CUDA devices: errors, times and memory; writes results/gpu.json.

Times are absolute, in milliseconds, medians of CUDA events; that of building an index is of the
clock, since it ends on the host. Libraries that are missing are named.
"""

import importlib.util
import json
import sys
import time

import numpy as np
import torch
from harness import environment

import recos

WIDTH = 768
ROWS, QUERIES = 2**20, 4096
MANY = 30_000_000
CHECKED = 32  # queries that are compared with all rows in float64


def main(path: str) -> None:
    """Measure and write to a file."""
    place = environment() | {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    results: dict[str, object] = {}
    for name, measure in {
        "bars": measure_bars,
        "error": measure_errors,
        "ms": measure_times,
        "peers": missing_peers,
    }.items():
        results[name] = measure()
        print(json.dumps({name: results[name]}, indent=2), flush=True)
        torch.cuda.empty_cache()
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"environment": place, "results": results}, file, indent=2)
            file.write("\n")


def measure_bars() -> list[dict[str, object]]:
    """Return what was aimed at and what was measured."""
    torch.manual_seed(0)
    bars = [*search_bars(), *pair_bars(), *training_bars()]
    torch.cuda.empty_cache()
    return [*bars, *large_bars()]


def bar(what: str, measured: float, limit: float | None, **more: object) -> dict[str, object]:
    """Return what was measured, and the aim, where there is one."""
    aim = {} if limit is None else {"bar": float(limit), "met": bool(measured <= limit)}
    found = {"what": what, "ms": float(measured), **aim, **more}
    print(found, flush=True)
    return found


def bare_product() -> float:
    """Return the time of the products of all queries with all rows in bfloat16."""
    X = torch.randn(ROWS, WIDTH, device="cuda").bfloat16()
    Q = torch.randn(QUERIES, WIDTH, device="cuda").bfloat16()
    out = torch.empty(QUERIES, ROWS, dtype=torch.bfloat16, device="cuda")
    return milliseconds(lambda: torch.mm(Q, X.T, out=out))


def rows_of(kind: str, count: int, seed: int) -> torch.Tensor:
    """Return random rows; clusters with a falling spectrum; or ones with heavy tails."""
    random = torch.Generator("cuda").manual_seed(seed)
    X = torch.randn(count, WIDTH, device="cuda", generator=random)
    if kind == "clustered":
        spectrum = torch.logspace(0, -1.5, WIDTH, device="cuda")
        same = torch.Generator("cuda").manual_seed(1)
        centres = torch.randn(4096, WIDTH, device="cuda", generator=same)
        which = torch.randint(0, 4096, (count,), device="cuda", generator=random)
        return (centres[which] + 0.5 * X) * spectrum
    if kind == "heavy-tailed":  # Student's t with 3 degrees of freedom
        parts = (torch.randn(count, WIDTH, device="cuda", generator=random) for _ in range(3))
        return X / (sum(part**2 for part in parts) / 3).sqrt()
    return X


def search_bars() -> list[dict[str, object]]:
    """Search a million rows, and build that index."""
    bare, found = bare_product(), []
    shape = f"{ROWS} x {WIDTH}, {QUERIES} queries"
    for kind, limit in (("random", bare), ("clustered", 13.0), ("heavy-tailed", None)):
        X, Q = rows_of(kind, ROWS, 2), rows_of(kind, QUERIES, 3)
        index = recos.Index(X, device="cuda")
        results: list[recos.TopK] = []
        took = milliseconds(
            lambda index=index, Q=Q, results=results: results.append(
                index.search(Q, 10, memory="1GiB")
            )
        )
        codes = index._segments[0].corpus.codes.dtype
        exact_scores, exact = exact_best(Q[:CHECKED], X, 10)
        scored = index._search(Q, 10, None, "1GiB", False)[1]
        found.append(
            bar(
                f"exact recos, 10 best, {shape}, {kind}",
                took,
                13.0 if kind == "random" else limit,
                screened=str(codes),
                error=float((results[-1].scores[:CHECKED].double() - exact_scores).abs().max()),
                differing=int((results[-1].indices[:CHECKED] != exact).sum()),
                scored=float(np.mean(scored)),
            )
        )
        if kind == "random":
            found.append(bar("the same, against the bare bfloat16 product", took, bare))
            unit = torch.nn.functional.normalize(X).bfloat16()
            some = torch.nn.functional.normalize(Q).bfloat16()
            cosine = milliseconds(lambda some=some, unit=unit: (some @ unit.T).topk(10, dim=1), 3)
            found[-1]["cosine product and topk, bfloat16"] = cosine
            del unit, some, index
            clock = []
            for _ in range(7):
                torch.cuda.synchronize()
                start = time.perf_counter()
                recos.Index(X, device="cuda")
                torch.cuda.synchronize()
                clock.append(1e3 * (time.perf_counter() - start))
            found.append(bar(f"index of {ROWS} x {WIDTH} from device memory", np.median(clock), 45))
        index = None
    return found


def exact_best(Q: torch.Tensor, X: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the best of all rows, scored in float64 by the definition."""
    scores = []
    Q = Q.double()
    up = Q.sort(dim=1)[0]
    for part in X.split(2**16):
        rows = part.double()
        ascending = rows.sort(dim=1)[0]
        dot = Q @ rows.T
        bounds = up @ ascending.T, up @ ascending.flip(1).T
        scores.append(dot / torch.where(dot < 0, bounds[1], bounds[0]).abs())
    best = torch.cat(scores, dim=1).topk(k, dim=1)
    return best.values, best.indices


def pair_bars() -> list[dict[str, object]]:
    """Compare all pairs, and aligned rows."""
    X, Y = (torch.randn(16384, WIDTH, device="cuda") for _ in range(2))
    half = X.half(), Y.half()
    product = milliseconds(lambda: torch.mm(half[0], half[1].T, out_dtype=torch.float32))
    took = milliseconds(lambda: recos.pairwise(X, Y, memory="64GiB"))
    some = X[:1024], Y[:1024]
    exact = recos.pairwise(*(x.double() for x in some))
    error = float((recos.pairwise(*some).double() - exact).abs().max())
    found = [
        bar("all pairs, 16384 x 16384 x 768, float32", took, 1.6 * product, product=product,
            error=error)
    ]  # fmt: skip
    U, V = (torch.randn(1_000_000, WIDTH, device="cuda") for _ in range(2))
    exact = recos.paired(U[:4096].double(), V[:4096].double())
    error = float((recos.paired(U[:4096], V[:4096]).double() - exact).abs().max())
    took = milliseconds(lambda: recos.paired(U, V))
    return [*found, bar("paired, 1000000 x 768, float32", took, 12.0, error=error)]


def training_bars() -> list[dict[str, object]]:
    """Go forward and backward through all pairs of 8192 rows with 8192, beside the cosine."""
    X, Y = (torch.randn(8192, WIDTH, device="cuda", requires_grad=True) for _ in range(2))

    def cosine() -> torch.Tensor:
        return torch.nn.functional.normalize(X) @ torch.nn.functional.normalize(Y).T

    def both(scores) -> float:
        def step() -> None:
            X.grad = Y.grad = None
            scores().sum().backward()

        return milliseconds(step, 5)

    def similarity() -> torch.Tensor:
        return recos.pairwise(X, Y, memory="64GiB")

    found = []
    for name, enabled in (("float32", False), ("bfloat16 autocast", True)):
        with torch.autocast("cuda", torch.bfloat16, enabled=enabled):
            base, took = both(cosine), both(similarity)
        what = f"forward and backward of all pairs, 8192 x 8192 x 768, {name}"
        found.append(bar(what, took, 1.8 * base, cosine=base))
    return found


def large_bars() -> list[dict[str, object]]:
    """Search thirty million float16 rows that fill a third of the memory."""
    X = torch.empty(MANY, WIDTH, dtype=torch.float16, device="cuda")
    for part in X.split(2**21):
        part.normal_()
    index = recos.Index(X, device="cuda")
    del X
    torch.cuda.empty_cache()
    Q = torch.randn(1024, WIDTH, device="cuda")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    took = milliseconds(lambda: index.search(Q, 100, memory="2.5GiB"), 3)
    extra = (torch.cuda.max_memory_allocated() - before) / 2**30
    index = None
    torch.cuda.empty_cache()
    share = bare_product() * (MANY * 1024) / (ROWS * QUERIES)
    return [
        bar(f"100 best of {MANY} x {WIDTH} float16, 1024 queries", took, 1.3 * share, GiB=extra)
    ]


def missing_peers() -> dict[str, str]:
    """Return why other libraries were not measured."""
    known = "faiss", "cuvs"
    return {
        name: "not measured"
        if importlib.util.find_spec(name)
        else "not installed on the machine, and nothing could be installed there"
        for name in known
    }


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
        "pairwise cos, the same": milliseconds(
            lambda: recos.pairwise(X, Y, metric="cos", memory="64GiB")
        ),
        "torch.sort of both, 1M x 768": milliseconds(lambda: (U.sort(-1), V.sort(-1))),
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

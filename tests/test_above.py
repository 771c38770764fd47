"""All pairs over a threshold: none missed, none twice, in order, however the work is cut."""

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from recos import METRICS, above, iter_pairwise, paired, pairwise

all_metrics = pytest.mark.parametrize("metric", METRICS)
all_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
THRESHOLDS = [-2.0, -1.0, -0.3, 0.0, 1e-9, 0.3, 0.9, 1.0]


def brute(metric, X, Y):
    """All scores, from the function of aligned vectors, row by row in float64."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    return np.array([METRICS[metric].function(x, Y) for x in X]).reshape(len(X), len(Y))


def same_pairs(hits, scores, threshold, *, itself=False, tolerance=0.0):
    """Check hits against all scores; pairs within the tolerance of the threshold may go missing."""
    pairs = [hit[:2] for hit in hits]
    assert pairs == sorted(set(pairs)), "each pair once, ordered by i and then j"
    found = np.zeros(scores.shape, bool)
    i, j = np.array(pairs, int).reshape(-1, 2).T
    found[i, j] = True
    wanted = np.triu(np.ones(scores.shape, bool), 1) if itself else np.ones(scores.shape, bool)
    clear = np.abs(scores - threshold) > tolerance
    expected = wanted & (scores >= threshold)
    np.testing.assert_array_equal(found & clear, expected & clear)
    assert not (found & ~wanted).any()
    np.testing.assert_allclose([hit[2] for hit in hits], scores[i, j], rtol=0, atol=1e-6)


def numbers(seed, *shape, dtype=np.float64):
    """Small whole numbers: sums are exact in every dtype, and ties are common."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def normal(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# --- Against brute force ------------------------------------------------------------------------


@all_dtypes
@all_metrics
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_hits_are_the_pairs_that_reach_the_threshold(metric, threshold, dtype):
    X, Y = numbers(1, 41, 5, dtype=dtype), numbers(2, 33, 5, dtype=dtype)
    X[7], Y[3], Y[4] = 0, 0, X[2]
    hits = list(above(X, Y, threshold=threshold, metric=metric))
    same_pairs(hits, brute(metric, X, Y), threshold, tolerance=1e-15)
    if threshold <= -1:
        assert len(hits) == 41 * 33
    assert len(hits) > 0


@all_dtypes
@all_metrics
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_within_one_matrix_each_pair_comes_once(metric, threshold, dtype):
    X = numbers(1, 71, 4, dtype=dtype)
    X[[3, 50]] = X[9]
    hits = list(above(X, threshold=threshold, metric=metric))
    same_pairs(hits, brute(metric, X, X), threshold, itself=True, tolerance=1e-15)
    if threshold <= -1:
        assert len(hits) == 71 * 70 // 2
    assert {(3, 9), (3, 50), (9, 50)} <= {hit[:2] for hit in hits} or threshold == 1.0


@all_metrics
@pytest.mark.parametrize("threshold", [1.0001, 2, 3.5, 1e30, 1e300])
def test_nothing_reaches_more_than_one(metric, threshold):
    X = normal(1, 50, 6)
    assert list(above(X, X, threshold=threshold, metric=metric)) == []


@all_dtypes
@all_metrics
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 300, 2), (257, 3, 1), (129, 130, 127)])
def test_awkward_sizes(metric, dtype, n, m, d):
    X, Y = normal(1, n, d, dtype=dtype), normal(2, m, d, dtype=dtype)
    scores = brute(metric, X, Y)
    for threshold in (float(np.median(scores)), float(scores.max()) - 1e-3):
        hits = list(above(X, Y, threshold=threshold, metric=metric))
        same_pairs(hits, scores, threshold, tolerance=1e-6)
        assert hits


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0)])
@all_metrics
def test_no_rows_give_no_hits(metric, n, m):
    for threshold in (-1, 0.5):
        assert list(above(np.ones((n, 2)), np.ones((m, 2)), threshold=threshold)) == []
        hits = above(np.ones((n, 2)), threshold=threshold, metric=metric)
        assert [hit[:2] for hit in hits] == [(i, j) for i in range(n) for j in range(i + 1, n)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", ">f8"])
def test_hits_are_python_numbers(dtype):
    X = numbers(1, 20, 3, dtype=dtype)
    hits = list(above(X, threshold=0.2))
    assert hits
    for hit in hits:
        assert type(hit) is tuple
        assert [type(field) for field in hit] == [int, int, float]


# --- Scores -------------------------------------------------------------------------------------


@all_dtypes
@all_metrics
def test_scores_are_those_of_aligned_rows(metric, dtype):
    X, Y = normal(1, 90, 7, dtype=dtype), normal(2, 80, 7, dtype=dtype)
    i, j, scores = map(list, zip(*above(X, Y, threshold=0.4, metric=metric), strict=True))
    assert len(i) > 20
    np.testing.assert_array_equal(scores, paired(X[i], Y[j], metric=metric).astype(float))


@all_dtypes
@all_metrics
def test_a_threshold_at_a_score_includes_it(metric, dtype):
    X, Y = normal(1, 60, 7, dtype=dtype), normal(2, 60, 7, dtype=dtype)
    scores = paired(X, Y, metric=metric)
    for i in range(60):
        pair = list(above(X[i : i + 1], Y[i : i + 1], threshold=scores[i], metric=metric))
        assert [hit[:2] for hit in pair] == [(0, 0)], i
        higher = float(np.nextafter(scores[i], dtype(2)))
        assert list(above(X[i : i + 1], Y[i : i + 1], threshold=higher, metric=metric)) == []


@all_dtypes
@all_metrics
def test_a_threshold_at_the_score_of_any_pair_of_many_includes_it(metric, dtype):
    X = normal(1, 300, 64, dtype=dtype)
    hits = list(above(X, threshold=0.3, metric=metric))
    assert hits
    for i, j, score in hits[:: max(1, len(hits) // 8)]:
        again = list(above(X, threshold=score, metric=metric))
        assert (i, j, score) in again
        assert again == [hit for hit in hits if hit[2] >= score]


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "bfloat16", "torch", "gradients"]
)
@pytest.mark.parametrize(("large", "threshold"), [(1000, 1e-3), (3, 1 / 3), (10, 0.1), (7, 1 / 7)])
def test_a_threshold_is_not_rounded_to_the_dtype_of_the_scores(kind, large, threshold):
    X, Y = [[0.0, 0, 0, 1, 0]], [[0.0, 0, 0, 1, large]]
    if kind in ("torch", "gradients"):
        torch = pytest.importorskip("torch")
        X, Y = torch.tensor(X, requires_grad=kind == "gradients"), torch.tensor(Y)
        score = paired(X, Y)[0].item()
    else:
        dtype = pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.dtype(kind)
        X, Y = np.array(X, dtype), np.array(Y, dtype)
        wide = np.float64 if kind == "float64" else np.float32  # narrow scores are not ranked
        score = float(paired(X.astype(wide), Y.astype(wide))[0])
    hits = [(0, 0, score)] if score >= threshold else []
    assert list(above(X, Y, threshold=threshold)) == hits


@pytest.mark.parametrize("threshold", [1, np.float32(0.5), np.float64(0.5), np.int64(1)])
def test_a_threshold_is_any_real_number(threshold):
    hits = list(above([[1.0, 2.0], [2.0, 4.0], [2.0, 1.0]], threshold=threshold))
    assert (0, 1, 1.0) in hits
    assert len(hits) == (1 if threshold == 1 else 3)


# --- Hard rows ----------------------------------------------------------------------------------


@all_dtypes
@all_metrics
def test_zero_rows_score_zero_and_no_more(metric, dtype):
    X = normal(1, 30, 5, dtype=dtype)
    X[[4, 20]] = 0
    with_zero = {(min(i, k), max(i, k)) for i in (4, 20) for k in range(30) if i != k}
    for threshold, expected in ((0.0, with_zero), (1e-9, set()), (-0.5, with_zero)):
        hits = list(above(X, threshold=threshold, metric=metric))
        found = {hit[:2]: hit[2] for hit in hits}
        assert found.keys() & with_zero == expected
        assert all(found[pair] == 0 for pair in expected)


@all_dtypes
@all_metrics
@pytest.mark.parametrize("threshold", [0.2, 0.999])
def test_nearly_constant_rows_are_not_missed(metric, dtype, threshold):
    X = np.concatenate([3 + 1e-3 * normal(1, 40, 12), normal(2, 40, 12), np.ones((2, 12))])
    X[40:60] -= X[40:60].mean(axis=1, keepdims=True)
    X = X.astype(dtype)
    hits = list(above(X, threshold=threshold, metric=metric))
    same_pairs(hits, brute(metric, X, X), threshold, itself=True, tolerance=1e-6)
    assert hits


@all_metrics
@pytest.mark.parametrize(
    ("dtype", "small", "large"), [(np.float32, 1e-30, 1e30), (np.float64, 1e-290, 1e290)]
)
@pytest.mark.parametrize("threshold", [0.5, 1e-6, -0.2, 1.0])
def test_extreme_lengths_are_not_missed(metric, dtype, small, large, threshold):
    X = normal(1, 45, 6, dtype=dtype)
    X[20:25] = X[0]
    X[::3] *= dtype(small)
    X[1::3] *= dtype(large)
    X[40:] = X[:5]
    scores = brute(metric, X, X)
    hits = list(above(X, threshold=threshold, metric=metric))
    same_pairs(hits, scores, threshold, itself=True, tolerance=1e-6)


@pytest.mark.parametrize("metric", ["decos", "tanimoto"])
@pytest.mark.parametrize("size", [1e-44, 1e-30, 1e-10, 1e10, 1e30, 1e38])
def test_lengths_beyond_float32_do_not_hide_equal_rows(metric, size):
    X = np.abs(normal(1, 40, 4)) * size / 10
    X[30:] = X[:10]
    X[10:20] = 1.5 * X[:10]
    score = {"decos": 12 / 13, "tanimoto": 6 / 7}[metric]  # of rows 1.5 times as long
    for dtype in (np.float32, np.float64):
        if dtype == np.float32 and size < 1e-40:
            continue  # subnormal: 1.5 times a row is rounded
        hits = {hit[:2] for hit in above(X.astype(dtype), threshold=score - 1e-5, metric=metric)}
        assert {(i, i + 30) for i in range(10)} <= hits
        assert {(i, i + 10) for i in range(10)} <= hits


@all_metrics
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_planted_duplicates_among_many_rows_are_found(metric, dtype):
    X = normal(1, 3000, 40, dtype=dtype)
    copies = [(0, 2999), (17, 1024), (1023, 1025), (2047, 2048), (1, 2)]
    for i, j in copies:
        X[j] = X[i]
    hits = list(above(X, threshold=0.99, metric=metric))
    assert [hit[:2] for hit in hits] == sorted(copies)
    assert all(hit[2] == pytest.approx(1, abs=1e-3) for hit in hits)


def test_many_rows_that_order_their_components_alike_are_found():
    """Recos is 1 although the cosine is not: no bound by the cosine alone will do."""
    base = np.sort(normal(1, 120, 20, dtype=np.float32), axis=1)
    X = base[:, np.random.default_rng(2).permutation(20)]
    Y = np.exp(3 * X)
    hits = list(above(X, Y, threshold=0.999))
    assert len(hits) == 120 * 120


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_pair_is_missed_whatever_the_rows(data):
    width = data.draw(st.integers(1, 6), "width")
    row = st.lists(
        st.sampled_from([0, 0, 1, -1, 2, -3, 7, 1000, -(10**6), 10**12]),
        min_size=width,
        max_size=width,
    )
    X = np.array(data.draw(st.lists(row, min_size=1, max_size=9), "X"), np.float64)
    Y = np.array(data.draw(st.lists(row, min_size=1, max_size=9), "Y"), np.float64)
    metric = data.draw(st.sampled_from(list(METRICS)), "metric")
    dtype = data.draw(st.sampled_from([np.float32, np.float64]), "dtype")
    X, Y = X.astype(dtype), Y.astype(dtype)
    scores = np.array([paired(np.broadcast_to(x, Y.shape), Y, metric=metric) for x in X], float)
    threshold = data.draw(
        st.sampled_from([*np.unique(scores).tolist(), -0.5, 1e-12, 0.25, 0.5, 0.999, 1.0])
    )
    hits = list(above(X, Y, threshold=threshold, metric=metric))
    expected = [(i, j) for i, j in np.argwhere(scores >= threshold).tolist()]
    assert [hit[:2] for hit in hits] == expected


# --- However the work is cut --------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["30kB", 300_000])
@pytest.mark.parametrize("threads", ["1", "3"])
@all_metrics
@all_dtypes
def test_hits_do_not_depend_on_budget_or_threads(monkeypatch, metric, threads, memory, dtype):
    X, Y = normal(1, 250, 9, dtype=dtype), normal(2, 200, 9, dtype=dtype)
    expected = list(above(X, Y, threshold=0.7, metric=metric))
    within = list(above(X, threshold=0.7, metric=metric))
    assert expected
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    assert list(above(X, Y, threshold=0.7, metric=metric, memory=memory)) == expected
    assert list(above(X, threshold=0.7, metric=metric, memory=memory)) == within


@all_dtypes
def test_hits_do_not_depend_on_the_rows_around_them(dtype):
    X = normal(1, 400, 30, dtype=dtype)
    hits = {hit[:2]: hit[2] for hit in above(X, threshold=0.3)}
    assert len(hits) > 50
    few = list(above(X[:150], threshold=0.3))
    assert few == [(i, j, score) for (i, j), score in sorted(hits.items()) if j < 150]
    with_huge = np.concatenate([X[:150], np.full((1, 30), 1e18, dtype)])
    again = list(above(with_huge, threshold=0.3))
    assert [hit for hit in again if hit[1] < 150] == few


@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_more_hits_than_memory_holds_come_in_parts(monkeypatch, threads, itself):
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    X = numbers(1, 70, 3)
    hits = list(above(X, None if itself else X.copy(), threshold=-1, memory="7kB"))
    assert len(hits) == (70 * 69 // 2 if itself else 70 * 70)
    same_pairs(hits, brute("recos", X, X), -1, itself=itself)


def test_one_row_may_have_more_hits_than_memory_holds():
    X, Y = np.ones((2, 2)), np.ones((1500, 2))
    hits = list(above(X, Y, threshold=1, memory="97kB"))
    assert hits == [(i, j, 1.0) for i in range(2) for j in range(1500)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layout_agnosticism(order):
    X = normal(1, 80, 6)
    expected = list(above(X, threshold=0.5))
    frozen = np.array(X, order=order)
    frozen.flags.writeable = False
    for given_rows in (
        frozen,
        X.astype(">f8", order=order),
        X.tolist(),
        np.repeat(X, 2, 1)[:, ::2],
    ):
        assert list(above(given_rows, threshold=0.5)) == expected


def test_no_input_is_changed():
    X = normal(1, 50, 6, dtype=np.float32)
    X[::2] *= np.float32(1e-25)
    before = X.copy()
    for metric in METRICS:
        list(above(X, threshold=0.1, metric=metric))
        list(above(X, X, threshold=-1, metric=metric))
    np.testing.assert_array_equal(X, before)


def test_hits_come_before_all_rows_are_compared(capsys):
    X = normal(1, 3000, 6)
    hits = above(X, threshold=0.9, memory="200kB", progress=True)
    next(hits)
    assert "100 %" not in capsys.readouterr().err
    hits.close()


def test_concurrent_callers_get_their_own_hits(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "3")
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    start = threading.Barrier(5)

    def call(seed):
        X = numbers(seed, 250, 8)
        expected = brute("cos", X, X)
        start.wait()
        for _ in range(4):
            same_pairs(
                list(above(X, threshold=0.6, metric="cos", memory="200kB")),
                expected,
                0.6,
                itself=True,
                tolerance=1e-15,
            )
        return seed

    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(call, range(5))) == list(range(5))
    now = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert now == pools


# --- Memory -------------------------------------------------------------------------------------


def peak_memory(blocks):
    """Return the most that was allocated at a time while ``blocks()`` was run through."""
    tracemalloc.start()
    try:
        for _ in blocks():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows_of(kind, n, d, dtype):
    """Normal rows, or centred rows with some constant ones: many doubtful pairs in few tiles."""
    X = np.random.default_rng(1).standard_normal((n, d))
    if kind == "doubtful":
        X -= X.mean(axis=1, keepdims=True)
        X[50 : 53 if dtype == np.float64 else 62] = 1.0
    return X.astype(dtype)


@pytest.mark.parametrize("budget", [2**20, 2**23, 2**25])
@pytest.mark.parametrize("kind", ["normal", "doubtful"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_blocks_stay_within_their_budget(monkeypatch, budget, kind, dtype):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    X = rows_of(kind, 600 if budget == 2**20 else 1500, 48, dtype)
    for metric in ("recos", "tanimoto"):
        pairwise(X[:70], metric=metric)  # compile first
        peak = peak_memory(lambda m=metric: iter_pairwise(X, metric=m, memory=budget))
        assert peak <= 1.1 * budget, f"{metric}: {peak / budget:.2f} of the budget"


@pytest.mark.parametrize(
    ("budget", "n", "threshold"),
    [
        (2**21, 200, -1.0),
        (2**20, 200, 0.2),
        (2**20, 600, 0.95),
        (2**23, 300, -1.0),
        (2**23, 1500, 0.95),
        (2**25, 600, -1.0),
        (2**25, 1500, 0.95),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["normal", "doubtful"])
def test_hits_stay_within_their_budget(monkeypatch, budget, n, threshold, dtype, kind):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    X = rows_of(kind, n, 48, dtype)
    list(above(X[:70], threshold=0.0))  # compile first
    peak = peak_memory(lambda: above(X, threshold=threshold, memory=budget))
    assert peak <= 1.1 * budget, f"{peak / budget:.2f} of the budget"


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf, np.float32("nan")])
def test_thresholds_that_are_not_finite_are_refused(threshold):
    with pytest.raises(ValueError, match=r"^threshold: expected a finite number, got .*(nan|inf)"):
        above(np.ones((2, 3)), threshold=threshold)


@pytest.mark.parametrize(
    "threshold", ["0.5", True, False, None, [0.5], 1j, np.complex128(0.5), np.bool(True)]
)
def test_thresholds_that_are_no_number_are_refused(threshold):
    with pytest.raises(TypeError, match=r"^threshold: expected a number, got "):
        above(np.ones((2, 3)), threshold=threshold)


def test_a_threshold_is_required():
    with pytest.raises(TypeError, match="threshold"):
        above(np.ones((2, 3)))


@all_metrics
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["X", "Y"])
def test_the_first_row_that_is_not_finite_is_named_at_the_call(metric, bad, name):
    X, Y = normal(1, 700, 5), normal(2, 700, 5)
    (X if name == "X" else Y)[[411, 602], 3] = bad
    for memory in ("100kB", "256MiB"):
        with pytest.raises(ValueError, match=rf"^{name}: expected finite numbers, .* in row 411;"):
            above(X, Y, threshold=2, metric=metric, memory=memory)


def test_a_matrix_with_itself_is_called_x_in_errors():
    X = normal(1, 30, 4)
    X[17, 0] = np.nan
    with pytest.raises(ValueError, match=r"^X: expected finite numbers, .* in row 17;"):
        above(X, threshold=0)


def test_other_errors_are_raised_at_the_call():
    X = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"^metric: expected one of recos, cos, decos, tanimoto"):
        above(X, threshold=0, metric="x")
    with pytest.raises(ValueError, match=r"^memory: expected a positive number of bytes"):
        above(X, threshold=0, memory="x")
    with pytest.raises(ValueError, match=r"^memory: expected at least 288 bytes for 2 rows"):
        above(X, threshold=0, memory=287)
    with pytest.raises(ValueError, match=r"^X and Y: expected vectors of the same length"):
        above(X, np.ones((2, 4)), threshold=0)
    with pytest.raises(ValueError, match=r"^Y: expected a matrix"):
        above(X, np.ones(3), threshold=0)


# --- Progress -----------------------------------------------------------------------------------


def test_progress_names_the_metric(capsys):
    X = normal(1, 300, 4)
    list(above(X, threshold=0.9, metric="decos", progress=True))
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("\rabove decos: ")
    assert written.err.endswith("100 %, 0 s left \n")


@pytest.mark.parametrize("progress", [None, False])
def test_progress_is_silent_where_nobody_looks(capsys, progress):
    list(above(normal(1, 300, 4), threshold=0.9, progress=progress))
    assert capsys.readouterr() == ("", "")


def test_many_rows_stay_within_the_budget(monkeypatch):
    """What is known of each row of X is not held for all rows at once."""
    monkeypatch.setenv("RECOS_NUM_THREADS", "1")  # coverage takes memory for every thread
    X, Y = normal(1, 400_000, 4, dtype=np.float32), normal(2, 8, 4, dtype=np.float32)
    list(above(X[:1000], Y, threshold=0.999, metric="decos"))  # compiled before it is measured
    tracemalloc.start()
    try:
        count = sum(1 for _ in above(X, Y, threshold=0.99, metric="decos", memory="2MiB"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 0
    assert peak < 1.1 * 2**21


def test_many_rows_on_the_right_need_memory():
    with pytest.raises(ValueError, match=r"^memory: expected at least 64000000 bytes for 2000000"):
        list(above(np.ones((1, 2)), np.ones((2_000_000, 2)), threshold=0.5, memory="8MiB"))

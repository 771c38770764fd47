"""Search: the result of scoring everything in float64, however the work is cut."""

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from recos import METRICS, TopK, _scan, mine_pairs, paired, range_search, recall, rerank, topk
from recos._scan import make_corpus, search
from recos._stores import Plain
from recos.metrics import exact_scores
from recos.profiles import describe, fit

all_metrics = pytest.mark.parametrize("metric", METRICS)


def normal(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def scale_all(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-30, 31, (n, 1))


def late_zeros(rng, n, d):
    """Rows opposite to the queries, and zeros after the first tile: these are the best."""
    X = -1 - np.abs(rng.standard_normal((n, d)))
    X[n - n // 8 :] = 0
    return X


def opposite(rng, n, d):
    X = -1 - np.abs(rng.standard_normal((n, d)))
    return np.concatenate([-X[: n // 300], X[n // 300 :]])


def rogue(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, -1] += 50
    return X


def nearly_constant(rng, n, d):
    return rng.standard_normal((n, 1)) + 1e-3 * rng.standard_normal((n, d))


def centred(rng, n, d):
    """Rows of sum 0, and constant ones whose products with these are only rounding."""
    X = rng.standard_normal((n, d))
    X -= X.mean(axis=1, keepdims=True)
    X[:: max(2, n // 9)] = 1.0
    return X


KINDS = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "student": lambda rng, n, d: rng.standard_t(3, (n, d)),
    "cauchy": lambda rng, n, d: np.clip(rng.standard_cauchy((n, d)), -1e6, 1e6),
    "one hot": lambda rng, n, d: np.eye(d)[rng.integers(0, d, n)] * rng.choice([1, -1, 2], (n, 1)),
    "ties": lambda rng, n, d: rng.integers(-1, 2, (n, d)).astype(float),
    "duplicates": lambda rng, n, d: rng.standard_normal((5, d))[rng.integers(0, 5, n)],
    "negative": lambda rng, n, d: -np.abs(rng.standard_normal((n, d))),
    "nearly constant": nearly_constant,
    "centred": centred,
    "rogue dimension": rogue,
    "zero rows": lambda rng, n, d: rng.standard_normal((n, d)) * rng.integers(0, 2, (n, 1)),
    "late zeros": late_zeros,
    "opposite": opposite,
    "all scales": scale_all,
}


def brute(metric, queries, corpus, k, allowed=None, own=False):
    """Score everything in float64, in the dtype that the rows are stored in."""
    dtype = np.result_type(queries, corpus, np.float32)
    queries, corpus = (np.ascontiguousarray(x, dtype) for x in (queries, corpus))
    scores = np.stack([exact_scores(METRICS[metric], row[None], corpus) for row in queries])
    kept = scores.copy()
    if allowed is not None:
        kept[:, ~allowed] = -np.inf
    if own:
        np.fill_diagonal(kept, -np.inf)
    order = np.lexsort((np.broadcast_to(np.arange(len(corpus)), kept.shape), -kept), axis=1)
    return TopK(np.take_along_axis(kept, order, 1)[:, :k], order[:, :k])


def same(found, expected, dtype=None):
    """Check rows exactly and scores to the last digit of their dtype."""
    np.testing.assert_array_equal(np.asarray(found.indices), expected.indices)
    scores = np.asarray(found.scores)
    np.testing.assert_array_max_ulp(scores, expected.scores.astype(dtype or scores.dtype), 1)


# --- Against brute force ------------------------------------------------------------------------


@all_metrics
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_scoring_everything(kind, dtype, metric):
    if dtype == np.float16 and kind in ("all scales", "cauchy"):
        kind = "normal"  # float16 does not hold such numbers
    rng = np.random.default_rng(7)
    X = KINDS[kind](rng, 900, 12).astype(dtype)
    queries = np.concatenate([KINDS[kind](rng, 5, 12).astype(dtype), X[:3], -X[4:6], 0 * X[:1]])
    found = topk(queries, X, 7, metric=metric)
    assert found.scores.dtype == dtype
    assert found.indices.dtype == np.int64
    same(found, brute(metric, queries, X, 7))


@all_metrics
@pytest.mark.parametrize("kind", ["normal", "student", "rogue dimension", "nearly constant"])
def test_wide_rows_are_screened_right(kind, metric):
    X = KINDS[kind](np.random.default_rng(3), 3000, 129).astype(np.float32)
    queries = X[:6] + normal(4, 6, 129, dtype=np.float32) / 2
    same(topk(queries, X, 10, metric=metric), brute(metric, queries, X, 10))


@all_metrics
def test_scores_are_those_of_the_function_of_aligned_vectors(metric):
    queries, X = normal(1, 4, 9), normal(2, 700, 9)
    scores, indices = topk(queries, X, 5, metric=metric)
    for query, score, rows in zip(queries, scores, indices, strict=True):
        expected = METRICS[metric].function(query, X)
        np.testing.assert_allclose(score, np.sort(expected)[::-1][:5], rtol=1e-13)
        np.testing.assert_allclose(score, expected[rows], rtol=1e-13)


@all_metrics
@pytest.mark.parametrize(
    ("n", "m", "d", "k"),
    [(1, 1, 1, 1), (3, 1, 1, 5), (1, 7, 3, 99), (5, 257, 1, 2), (2, 300, 17, 300), (4, 256, 2, 1)],
)
def test_awkward_sizes(metric, n, m, d, k):
    queries, X = normal(1, n, d, dtype=np.float32), normal(2, m, d, dtype=np.float32)
    found = topk(queries, X, k, metric=metric)
    assert found.scores.shape == found.indices.shape == (n, min(k, m))
    same(found, brute(metric, queries, X, k))


@all_metrics
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", ">f4", ">f8"])
def test_results_are_right_for_every_dtype(metric, dtype):
    X = np.random.default_rng(1).integers(-3, 4, (600, 8)).astype(dtype)
    rows = X.astype(np.float64 if dtype in ("int64", ">f8") else np.float32)
    found = topk(X[:9], X, 6, metric=metric)
    assert found.scores.dtype == rows.dtype
    same(found, brute(metric, rows[:9], rows, 6))


@all_metrics
@pytest.mark.parametrize(
    ("of_queries", "of_corpus"),
    [(1e300, 1), (1, 1e300), (1e300, 1e300), (1e-300, 1), (1, 1e-300), (1e-300, 1e-300)],
)
def test_lengths_beyond_float32_hide_nothing(metric, of_queries, of_corpus):
    X = normal(1, 700, 8)
    queries, X = X[:5] * of_queries, X * of_corpus
    same(topk(queries, X, 5, metric=metric), brute(metric, queries, X, 5))


@all_metrics
@pytest.mark.parametrize("largest", ["queries", "corpus", "both"])
def test_the_largest_numbers_of_float32_hide_nothing(metric, largest):
    X = normal(1, 700, 8)
    large = (X / np.abs(X).max(axis=1, keepdims=True) * 3.4e38).astype(np.float32)
    X = X.astype(np.float32)
    queries, corpus = (large if largest in (x, "both") else X for x in ("queries", "corpus"))
    same(topk(queries[:5], corpus, 5, metric=metric), brute(metric, queries[:5], corpus, 5))


@all_metrics
def test_a_few_rows_beyond_range_among_others_are_found(metric):
    X = normal(1, 800, 6)
    X[500:700] *= 10.0 ** np.random.default_rng(2).integers(-300, 301, (200, 1))
    X[700] = 3 * X[3]
    queries = np.concatenate([X[:4], X[500:520]])
    same(topk(queries, X, 4, metric=metric), brute(metric, queries, X, 4))


@settings(max_examples=120)
@given(st.data())
def test_no_row_is_missed_whatever_the_rows(data):
    width = data.draw(st.integers(1, 5))
    values = st.sampled_from([0, 0, 1, -1, 2, -3, 7, 1000, -(10**6), 1e12, 1e-9, 1e30, -1e-30])
    X = data.draw(hnp.arrays(np.float64, (data.draw(st.integers(1, 12)), width), elements=values))
    queries = data.draw(hnp.arrays(np.float64, (3, width), elements=values))
    metric = data.draw(st.sampled_from(list(METRICS)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    k = data.draw(st.integers(1, 4))
    X = np.concatenate([-np.ones((257, width)), X]).astype(dtype)
    queries = queries.astype(dtype)
    same(topk(queries, X, k, metric=metric), brute(metric, queries, X, k))


# --- However the work is cut --------------------------------------------------------------------


@all_metrics
@pytest.mark.parametrize("memory", ["64kB", 300_000, "1GiB"])
@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_results_do_not_depend_on_budget_or_threads(monkeypatch, metric, threads, memory):
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    X = KINDS["student"](np.random.default_rng(1), 5000, 11).astype(np.float32)
    X[4000:4100] = X[:100]
    allowed = np.arange(5000) % 7 != 1
    found = topk(X[:40], X, 5, metric=metric, memory=memory, where=allowed)
    same(found, brute(metric, X[:40], X, 5, allowed))


@pytest.mark.parametrize("memory", ["64kB", "256MiB"])
def test_no_row_finds_itself_in_any_part_of_the_corpus(monkeypatch, memory):
    monkeypatch.setenv("RECOS_NUM_THREADS", "3")
    X = np.random.default_rng(1).integers(-2, 3, (1500, 4)).astype(np.float32)
    allowed = np.random.default_rng(2).random(1500) < 0.6
    found = topk(X, X, 3, exclude_self=True, memory=memory, where=allowed)
    assert not (found.indices == np.arange(1500)[:, None]).any()
    same(found, brute("recos", X, X, 3, allowed, own=True))


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layout_agnosticism(order):
    X = normal(1, 500, 6)
    expected = topk(X[:9], X, 4)
    frozen = np.array(X, order=order)
    frozen.flags.writeable = False
    for rows in (frozen, X.astype(">f8", order=order), X.tolist(), np.repeat(X, 2, 1)[:, ::2]):
        same(topk(rows[:9], rows, 4), expected)


def test_no_input_is_changed():
    X = KINDS["all scales"](np.random.default_rng(1), 400, 6).astype(np.float32)
    before = X.copy()
    for metric in METRICS:
        topk(X, X, 3, metric=metric, exclude_self=True)
        rerank(X[:3], X, metric=metric)
    np.testing.assert_array_equal(X, before)


def test_concurrent_callers_get_their_own_results(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    start = threading.Barrier(4)

    def call(seed):
        X = normal(seed, 1200, 8)
        metric = list(METRICS)[seed % 4]
        expected = brute(metric, X[:20], X, 5)
        start.wait()
        for _ in range(4):
            same(topk(X[:20], X, 5, metric=metric), expected)
        return seed

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(4))) == list(range(4))


def found_by_search(X, queries, k=10, metric="recos", memory=2**27):
    metric = METRICS[metric]
    shape = fit(metric, X, 8)
    corpus = make_corpus(Plain(X, X.dtype), shape, describe(shape, X, X.dtype, name="X"))
    return search(metric, queries, corpus, k, memory=memory)


@all_metrics
@pytest.mark.parametrize("kind", ["normal", "student", "negative", "zero rows"])
def test_few_rows_are_scored_exactly(monkeypatch, kind, metric):
    monkeypatch.setenv("RECOS_NUM_THREADS", "1")
    X = KINDS[kind](np.random.default_rng(1), 5000, 64).astype(np.float32)
    queries = normal(2, 30, 64, dtype=np.float32)
    found = found_by_search(X, queries, metric=metric)
    same(found, brute(metric, queries, X, 10))
    assert (found.scored >= 10).all()
    assert np.median(found.scored) <= 40


def test_all_exact_scores_are_counted():
    X, queries = np.ones((3000, 4)), normal(1, 2, 4)
    found = found_by_search(X, queries, 3, memory=2**16)
    assert (found.indices == [0, 1, 2]).all()
    assert (found.scored >= 3000).all()


@pytest.mark.parametrize("rows", ["equal", "beyond float32"])
def test_ties_and_unknown_rows_take_no_more_memory_than_allowed(monkeypatch, rows):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    X = np.ones((150_000, 6)) if rows == "equal" else 1e200 * normal(1, 150_000, 6)
    queries = normal(2, 16, 6)
    topk(queries[:1], X[:600], 2)  # compile first
    tracemalloc.start()
    found = topk(queries, X, 3, memory="16MiB")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if rows == "equal":
        assert (found.indices == [0, 1, 2]).all()
    else:
        same(found, brute("recos", queries, X, 3))
    assert peak <= 1.1 * 2**24, f"{peak / 2**24:.2f} of the budget"


@pytest.mark.parametrize("progress", [None, False, True])
def test_progress_is_shown_where_it_is_asked_for(capsys, progress):
    topk(normal(1, 3, 4), normal(2, 300, 4), 2, metric="decos", progress=progress)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("\rsearch decos: ") == (progress is True)


# --- Array kinds --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_have_the_kind_of_the_inputs(xp, x64, dtype):
    X = normal(1, 500, 7, dtype=dtype)
    given = xp.array(X, dtype)
    for found in (
        topk(given[:5, :], given, 4),
        rerank(given[:5, :], given, k=4, candidates=xp.array(np.tile(np.arange(500), (5, 1)))),
    ):
        assert xp.owns(found.scores)
        assert xp.owns(found.indices)
        assert (xp.dtype_of(found.scores), xp.dtype_of(found.indices)) == (dtype, "int64")
        expected = brute("recos", X[:5], X, 4)
        np.testing.assert_array_equal(xp.numpy(found.indices), expected.indices)
        np.testing.assert_array_equal(
            xp.numpy(found.scores), expected.scores.astype(dtype).astype(np.float64)
        )
    assert recall(found, found) == 1
    for where in (np.arange(9), np.arange(500) < 9):
        narrow = topk(given[:5, :], given, 4, where=xp.array(where))
        np.testing.assert_array_equal(
            xp.numpy(narrow.indices), brute("recos", X[:5], X, 4, np.arange(500) < 9).indices
        )
    pairs = range_search(given[:5, :], given, 0.9)
    assert isinstance(pairs.scores, np.ndarray)
    np.testing.assert_array_equal(pairs.j, range_search(X[:5], X, 0.9).j)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_torch_families_come_back_without_gradients(dtype, gradients):
    torch = pytest.importorskip("torch")
    X = torch.asarray(normal(1, 500, 7)).to(getattr(torch, dtype)).requires_grad_(gradients)
    found = topk(X[:5], X, 4)
    assert (found.scores.dtype, found.scores.requires_grad) == (X.dtype, False)
    stored = X.detach().float().numpy()
    expected = brute("recos", stored[:5], stored, 4)
    np.testing.assert_array_equal(found.indices.numpy(), expected.indices)
    assert torch.equal(found.scores, torch.asarray(expected.scores).to(X.dtype))


def test_jax_without_64_bits_gives_what_it_has():
    jnp = pytest.importorskip("jax.numpy")
    X = normal(1, 300, 5, dtype=np.float32)
    found = topk(jnp.asarray(X[:3]), jnp.asarray(X), 4)
    same(found, brute("recos", X[:3], X, 4))


# --- Which rows may be found --------------------------------------------------------------------


@all_metrics
@pytest.mark.parametrize("share", [0.002, 0.3, 1.0])
def test_masks_and_row_numbers_filter_alike(metric, share):
    X = normal(1, 1000, 6, dtype=np.float32)
    allowed = np.random.default_rng(2).random(1000) < share
    allowed[17] = True
    ids = np.random.default_rng(3).permutation(np.flatnonzero(allowed))
    expected = brute(metric, X[:8], X, min(5, allowed.sum()), allowed)
    for where in (
        allowed,
        allowed.tolist(),
        ids,
        ids.tolist(),
        [*ids, *ids],
        ids.astype(np.uint16),
    ):
        same(topk(X[:8], X, 5, metric=metric, where=where), expected)


@pytest.mark.parametrize("where", [[], np.zeros(50, bool), np.zeros(0, np.int64)])
def test_an_empty_filter_finds_nothing(where):
    found = topk(normal(1, 3, 4), normal(2, 50, 4), where=where)
    assert found.scores.shape == found.indices.shape == (3, 0)
    assert found.indices.dtype == np.int64


@all_metrics
def test_no_row_finds_itself(metric):
    X = np.random.default_rng(1).integers(-1, 2, (300, 3)).astype(np.float32)
    found = topk(X, X, 6, metric=metric, exclude_self=True)
    same(found, brute(metric, X, X, 6, own=True))
    assert topk(X, X, 999, exclude_self=True).indices.shape == (300, 299)
    assert topk(X[:1], X[:1], exclude_self=True).indices.shape == (1, 0)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0)])
def test_no_rows_give_no_results(n, m):
    found = topk(np.ones((n, 2)), np.ones((m, 2)))
    assert found.scores.shape == found.indices.shape == (n, m)


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [topk, lambda Q, X, k: rerank(Q, X, k=k)], ids=["topk", "rerank"])
def test_k_is_a_whole_number_of_at_least_one(call):
    X = np.ones((3, 2))
    for k in (2.0, "2", True, 1j, [2]):
        with pytest.raises(TypeError, match=r"^k: expected a whole number of at least 1, got "):
            call(X, X, k)
    for k in (0, -1, np.int64(-3)):
        with pytest.raises(ValueError, match=r"^k: expected a whole number of at least 1, got "):
            call(X, X, k)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([True], r"expected a mask of 3 bools or row numbers, got shape \(1,\) of bool"),
        ([0.0, 1.0], r"expected a mask of 3 bools or row numbers, got shape \(2,\) of float64"),
        ([[0, 1]], r"expected a mask of 3 bools or row numbers, got shape \(1, 2\) of int64"),
        ("abc", r"expected a mask of 3 bools or row numbers, got shape \(\) of <U3"),
        (1, r"expected a mask of 3 bools or row numbers, got shape \(\) of int64"),
        ([0, 3], "expected row numbers from 0 to 2, got 3"),
        ([-1], "expected row numbers from 0 to 2, got -1"),
    ],
)
def test_filters_that_fit_no_row_are_refused(where, message):
    with pytest.raises(ValueError, match=f"^where: {message}"):
        topk(np.ones((2, 4)), np.ones((3, 4)), where=where)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([[0.0], [1.0]], r"expected row numbers of shape \(2, c\), got shape \(2, 1\) of float64"),
        ([0, 1], r"expected row numbers of shape \(2, c\), got shape \(2,\) of int64"),
        ([[0]], r"expected row numbers of shape \(2, c\), got shape \(1, 1\) of int64"),
        ([[0], [3]], "expected row numbers from -1 to 2, got 3"),
        ([[0], [-2]], "expected row numbers from -1 to 2, got -2"),
        ([[True], [False]], r"expected row numbers of shape \(2, c\), got shape \(2, 1\) of bool"),
    ],
)
def test_candidates_that_fit_no_row_are_refused(candidates, message):
    with pytest.raises(ValueError, match=f"^candidates: {message}"):
        rerank(np.ones((2, 4)), np.ones((3, 4)), candidates=candidates)


def test_shapes_that_do_not_fit_are_refused():
    X = np.ones((3, 4))
    with pytest.raises(ValueError, match=r"^queries: expected a matrix of shape"):
        topk(X[0], X)
    with pytest.raises(ValueError, match=r"^corpus: expected a matrix of shape"):
        topk(X, X[None])
    with pytest.raises(ValueError, match=r"^queries and corpus: expected vectors of the same len"):
        topk(X, np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"^exclude_self: expected as many .* got 2 and 3"):
        topk(X[:2], X, exclude_self=True)
    for vectors in (X[0], np.ones((2, 5, 4)), np.ones((1, 3, 5, 4))):
        with pytest.raises(ValueError, match=r"^queries and vectors: expected shapes \(n, d\) and"):
            rerank(X, vectors)
    with pytest.raises(ValueError, match=r"^queries and vectors: expected vectors of the same"):
        rerank(X, np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"^queries and corpus: expected vectors of the same"):
        range_search(X, np.ones((3, 5)), 0.5)
    for found in ([[1]], [1, 2]):
        with pytest.raises(ValueError, match=r"^found and truth: expected as many queries in each"):
            recall(found, topk(X[:2], X, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda X, **more: topk(X, X, **more),
        lambda X, **more: range_search(X, X, 0.5, **more),
        lambda X, **more: mine_pairs(X, k=1, **more),
        lambda X, **more: mine_pairs(X, threshold=0.5, **more),
    ],
    ids=["topk", "range", "best pairs", "pairs over"],
)
def test_metrics_and_budgets_are_checked(call):
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"^metric: expected one of recos, cos, decos, tanimoto"):
        call(X, metric="dot")
    with pytest.raises(ValueError, match=r"^memory: expected a positive number of bytes"):
        call(X, memory="much")
    with pytest.raises(ValueError, match=r"^metric: expected one of recos, cos, decos, tanimoto"):
        rerank(X, X, metric="dot")


@all_metrics
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["queries", "corpus"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_row_that_is_not_finite_is_named(metric, bad, name, dtype):
    queries, corpus = normal(1, 700, 5, dtype=dtype), normal(2, 9000, 5, dtype=dtype)
    (queries if name == "queries" else corpus)[[411, 602], 3] = bad
    for memory in ("100kB", "256MiB"):
        with pytest.raises(ValueError, match=rf"^{name}: expected finite numbers, .* in row 411;"):
            topk(queries, corpus, 2, metric=metric, memory=memory)
    with pytest.raises(ValueError, match=rf"^{name}: expected finite numbers, .* in row 411;"):
        range_search(queries, corpus, 2, metric=metric)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_named_by_what_the_caller_calls_them(bad):
    X = normal(1, 50, 5)
    X[17, 2] = bad
    for asked in ({"k": 2}, {"threshold": 0.5}):
        with pytest.raises(ValueError, match=r"^X: expected finite numbers, .* in row 17;"):
            mine_pairs(X, **asked)
    with pytest.raises(ValueError, match=r"^queries: expected finite numbers, .* in row 17;"):
        rerank(X, np.ones((3, 5)))
    with pytest.raises(ValueError, match=r"^vectors: expected finite numbers, .* in row 17;"):
        rerank(np.ones((2, 5)), X, candidates=[[3, 4], [1, 17]])
    assert rerank(np.ones((1, 5)), X, candidates=[[3, 4]]).indices.shape == (1, 2)


# --- rerank -------------------------------------------------------------------------------------


@all_metrics
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rerank_orders_all_rows_as_topk_does(metric, dtype):
    X = np.random.default_rng(1).integers(-2, 3, (400, 5)).astype(dtype)
    found = rerank(X[:7], X, metric=metric)
    assert found.scores.dtype == dtype
    same(found, brute(metric, X[:7], X, 400))
    same(rerank(X[:7], X, k=9, metric=metric), topk(X[:7], X, 9, metric=metric))


def test_missing_and_repeated_candidates_come_last():
    queries, X = normal(1, 3, 4), normal(2, 50, 4)
    candidates = [[7, -1, 7, 3, 7], [-1] * 5, [1, 2, 3, 4, 5]]
    scores, indices = rerank(queries, X, candidates=candidates)
    assert indices[0, 2:].tolist() == [-1] * 3
    assert indices[1].tolist() == [-1] * 5
    assert set(indices[0, :2]) == {3, 7}
    assert (np.isneginf(scores) == (indices < 0)).all()
    allowed = np.isin(np.arange(50), [1, 2, 3, 4, 5])
    same(TopK(scores[2:], indices[2:]), brute("recos", queries[2:], X, 5, allowed))


@pytest.mark.parametrize("candidates", [[[], []], np.zeros((2, 0), int)])
def test_no_candidates_give_nothing(candidates):
    assert rerank(np.ones((2, 3)), np.ones((4, 3)), candidates=candidates).indices.shape == (2, 0)


@all_metrics
def test_candidates_of_each_query_are_reranked_themselves(metric):
    queries, X = normal(1, 4, 6), normal(2, 4, 30, 6)
    picked = np.random.default_rng(3).permuted(np.tile(np.arange(30), (4, 1)), axis=1)[:, :9]
    whole, some = (
        rerank(queries, X, metric=metric),
        rerank(queries, X, candidates=picked, k=4, metric=metric),
    )
    for i in range(4):
        allowed = np.isin(np.arange(30), picked[i])
        pair = queries[i : i + 1], X[i]
        same(TopK(*(x[i : i + 1] for x in whole)), brute(metric, *pair, 30))
        same(TopK(*(x[i : i + 1] for x in some)), brute(metric, *pair, 4, allowed))


# --- recall -------------------------------------------------------------------------------------


def test_recall_forgives_ties():
    truth = TopK(np.array([[0.9, 0.8, 0.8, 0.8]]), np.array([[4, 2, 7, 9]]))
    assert recall([[4, 9]], truth, k=2) == 1
    assert recall([[9, 7]], truth, k=2) == 1  # each as good as the second
    assert recall([[4, 5]], truth, k=2) == 0.5
    assert recall(TopK(np.array([[0.9, 0.8]]), np.array([[4, 11]])), truth, k=2) == 1
    assert recall(TopK(np.array([[0.9, 0.7]]), np.array([[4, 11]])), truth, k=2) == 0.5


def test_recall_counts_each_row_once_and_only_what_is_there():
    truth = TopK(np.array([[0.9, 0.8], [0.5, -np.inf]]), np.array([[4, 2], [3, -1]]))
    assert recall(truth, truth) == 1
    assert recall([[4, 2], [3, -1]], truth) == 1
    assert recall([[4, 4], [3, 3]], truth) == 0.75
    assert recall([[4, -1], [-1, -1]], truth) == 0.25
    assert recall([[2], [3]], truth) == 0.75
    assert recall(np.zeros((2, 0), int), truth) == 0
    none = TopK(np.zeros((2, 0)), np.zeros((2, 0), int))
    assert recall([[1], [2]], none) == 1


def test_recall_of_a_search_with_itself_is_one():
    X = np.random.default_rng(1).integers(-1, 2, (200, 3)).astype(float)
    truth = topk(X, X, 10)
    reversed_ties = brute("recos", X, X[::-1], 10)
    assert recall(TopK(reversed_ties.scores, 199 - reversed_ties.indices), truth, k=5) == 1
    assert recall(truth.indices[:, ::-1], truth) == 1
    assert recall(np.full((200, 10), 999), truth) == 0


# --- range_search and mine_pairs ----------------------------------------------------------------


@all_metrics
@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.3, 0.8, 1.0, 1.5])
def test_range_search_finds_what_reaches_the_threshold(metric, threshold):
    rng = np.random.default_rng(1)
    queries, X = rng.integers(-2, 3, (9, 4)) * 1.0, rng.integers(-2, 3, (200, 4)) * 1.0
    found = range_search(queries, X, threshold, metric=metric)
    scores = np.stack([paired(np.tile(q, (200, 1)), X, metric=metric) for q in queries])
    i, j = np.nonzero(scores >= threshold)
    order = np.lexsort((j, -scores[i, j], i))
    np.testing.assert_array_equal(found.i, i[order])
    np.testing.assert_array_equal(found.j, j[order])
    np.testing.assert_array_equal(found.scores, scores[i, j][order])
    assert (len(found.i) == 0) == (threshold > 1)


@all_metrics
@pytest.mark.parametrize("max_pairs", [None, 5, 10**6])
def test_mined_pairs_reach_the_threshold(metric, max_pairs):
    X = np.random.default_rng(1).integers(-2, 3, (120, 4)) * 1.0
    found = mine_pairs(X, threshold=0.7, max_pairs=max_pairs, metric=metric)
    i, j = np.triu_indices(120, 1)
    scores = paired(X[i], X[j], metric=metric)
    order = np.lexsort((j, i, -scores))
    order = order[scores[order] >= 0.7][:max_pairs]
    assert len(order) >= 5
    for field, expected in zip(found, (i, j, scores), strict=True):
        np.testing.assert_array_equal(field, expected[order])


@all_metrics
@pytest.mark.parametrize("max_pairs", [None, 7])
def test_mined_pairs_are_those_of_each_row_with_its_best(metric, max_pairs):
    X = normal(1, 90, 4)
    found = mine_pairs(X, k=2, max_pairs=max_pairs, metric=metric)
    best = brute(metric, X, X, 2, own=True)
    pairs = {}
    for row, (scores, others) in enumerate(zip(*best, strict=True)):
        for score, other in zip(scores, others, strict=True):
            pairs[min(row, other), max(row, other)] = score
    expected = sorted((-score, i, j) for (i, j), score in pairs.items())[:max_pairs]
    np.testing.assert_array_equal(found.i, [i for _, i, _ in expected])
    np.testing.assert_array_equal(found.j, [j for *_, j in expected])
    np.testing.assert_allclose(found.scores, [-score for score, *_ in expected], rtol=1e-15)


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_make_no_pairs(n):
    for asked in ({"k": 3}, {"threshold": -1}):
        assert [len(field) for field in mine_pairs(np.ones((n, 3)), **asked)] == [0, 0, 0]


def test_mining_needs_one_way_to_choose():
    X = np.ones((3, 2))
    for asked in ({}, {"k": 1, "threshold": 0.5}):
        with pytest.raises(
            ValueError, match=r"^threshold and k: expected exactly one of them, got"
        ):
            mine_pairs(X, **asked)
    with pytest.raises(ValueError, match=r"^k: expected a whole number of at least 1, got 0"):
        mine_pairs(X, k=0)
    with pytest.raises(ValueError, match=r"^max_pairs: expected a whole number of at least 1"):
        mine_pairs(X, k=1, max_pairs=0)
    with pytest.raises(ValueError, match=r"^threshold: expected a finite number, got nan"):
        mine_pairs(X, threshold=np.nan)


# --- What was wrong once --------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 8, 16, 64])
@pytest.mark.parametrize("width", [64, 128, 384, 768, 1024])
def test_groups_of_queries_stay_large_and_fit_into_memory(monkeypatch, threads, width):
    monkeypatch.setenv("RECOS_NUM_THREADS", str(threads))
    for memory in (2**24, 2**27, 2**28):
        groups, tile = _scan._plan(64 * threads, 200_000, width, 10, memory // threads)
        group = groups[0].stop
        assert (group, tile) == (1, 16) or (
            group * (24 * width + 36 * tile) + 4 * width * tile <= memory // threads // 2
        )
        if memory // threads >= 2**23:
            assert group == 64, (memory, tile)


@pytest.mark.parametrize("width", [128, 384, 768])
def test_two_threads_take_half_of_the_queries_each(monkeypatch, width):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    groups, tile = _scan._plan(1000, 200_000, width, 10, 2**26)
    assert [group.stop for group in groups] == [500, 1000]
    assert tile == 1048
    assert len(_scan._plan(50_000, 3, width, 1, 2**22)[0]) <= 782  # few rows take no room


def traced_peak(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "how", [{"threshold": 0.5, "max_pairs": 100}, {"k": 100, "max_pairs": 100}]
)
def test_the_best_of_many_pairs_fit_into_memory(monkeypatch, how):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    X = 1 + 0.05 * normal(1, 800, 16)
    expected = mine_pairs(X, **how)
    peak = traced_peak(lambda: same_pairs(mine_pairs(X, **how, memory="8MiB"), expected))
    assert peak <= 1.1 * 2**23, f"{peak / 2**23:.2f} of the budget"


def same_pairs(found, expected):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_many_queries_take_no_more_memory_than_allowed(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    X, queries = normal(1, 500, 16), normal(2, 50_000, 16)
    topk(queries[:100], X, 10)  # compile first
    result = 50_000 * 10 * (8 + 4)
    peak = traced_peak(lambda: topk(queries, X, 10, memory="16MiB"))
    assert peak <= 1.1 * 2**24 + result, f"{(peak - result) / 2**24:.2f} of the budget"


@pytest.mark.parametrize("memory", ["64kB", "256MiB"])
def test_pairs_of_float16_rows_are_ordered_in_float64(memory):
    X = (1 + 0.05 * normal(1, 300, 32)).astype(np.float16)
    found = mine_pairs(X, k=3, metric="cos", max_pairs=20, memory=memory)
    expected = mine_pairs(X.astype(float), k=3, metric="cos", max_pairs=20)
    assert found.scores.dtype == np.float16
    np.testing.assert_array_equal(found.i, expected.i)
    np.testing.assert_array_equal(found.j, expected.j)


def test_a_query_that_the_filter_leaves_nothing_misses_its_place():
    X = normal(1, 3, 6)
    found = topk(X, X, 1, where=[0], exclude_self=True)
    assert found.indices.tolist() == [[-1], [0], [0]]
    assert found.scores[0, 0] == -np.inf
    two = topk(X, X, 5, where=[0, 2], exclude_self=True)
    assert two.indices[:, 1].tolist()[::2] == [-1, -1]
    assert set(two.indices[1].tolist()) == {0, 2}


def test_results_for_no_queries_have_as_many_columns_as_others():
    X = normal(1, 20, 6)
    assert topk(X[:0], X, 10).indices.shape == (0, 10)
    assert rerank(X[:0], X, k=10).indices.shape == (0, 10)


def test_recall_counts_no_row_that_is_missing_in_the_truth():
    truth = TopK(np.array([[0.9, -np.inf]]), np.array([[4, -1]]))
    assert recall(TopK(np.array([[0.1, -np.inf]]), np.array([[7, -1]])), truth) == 0
    assert recall(TopK(np.array([[0.9, 0.1]]), np.array([[4, 7]])), truth) == 1
    assert recall([[7, 4]], truth) == 1
    assert recall([[7, -1]], truth) == 0


def test_recall_compares_names():
    truth = TopK(np.array([[0.9, 0.8]]), np.array([["a", "b"]]))
    assert recall(truth, truth) == 1
    assert recall([["b", "c"]], truth) == 0.5
    assert recall([["b", "b"]], truth) == 0.5


def test_a_threshold_is_compared_with_the_scores_that_are_reported():
    X = normal(1, 400, 64).astype(np.float32)
    Y = (X + 1e-5 * normal(2, 400, 64)).astype(np.float32)
    found = range_search(X, Y, 1.0, metric="cos")
    assert len(found.i)
    assert (found.scores == 1).all()
    exact = exact_scores(METRICS["cos"], X[found.i], Y[found.j])
    assert ((exact < 1) & (exact > 1 - 1e-7)).all()
    assert not len(range_search(X.astype(float), Y.astype(float), 1.0, metric="cos").i)

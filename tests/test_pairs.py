"""Aligned rows and all pairs: against exact arithmetic, however the work is cut."""

import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import recos
from recos import METRICS, iter_pairwise, paired, pairwise

DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float16: 1e-3, np.float32: 2e-6, np.float64: 1e-13}
SHAPES = [
    (0, 3, 2),
    (3, 0, 2),
    (0, 0, 1),
    (1, 1, 1),
    (2, 3, 1),
    (3, 2, 2),
    (127, 129, 3),
    (128, 128, 2),
    (129, 127, 255),
    (255, 257, 1),
    (257, 255, 129),
    (1023, 1025, 3),
    (1025, 2, 128),
    (2, 1025, 127),
    (3, 129, 1025),
    (1, 257, 1023),
    (128, 1, 257),
]

all_metrics = pytest.mark.parametrize("metric", METRICS)
all_dtypes = pytest.mark.parametrize("dtype", DTYPES)


def brute(metric, X, Y):
    """All pairs in plain float64 NumPy; exact up to the division where all sums are."""
    X, Y = np.asarray(X, np.float64), np.asarray(Y, np.float64)
    dot, low, high = X @ Y.T, np.sort(X), np.sort(Y)
    squares = (X * X).sum(1)[:, None] + (Y * Y).sum(1)
    bound = {
        "recos": np.abs(np.where(dot < 0, low @ high[:, ::-1].T, low @ high.T)),
        "cos": np.sqrt(np.outer((X * X).sum(1), (Y * Y).sum(1))),
        "decos": squares / 2,
        "tanimoto": squares - dot,
    }[metric]
    return np.divide(dot, bound, out=np.zeros_like(dot), where=bound != 0)


def exact(metric, X, Y):
    """All pairs in integer arithmetic, rounded once (cos: twice)."""
    X, Y = (
        np.array([[int(Fraction(float(x)) * 2**1100) for x in row] for row in rows], object)
        for rows in (X, Y)
    )
    low, high = np.sort(X), np.sort(Y)
    dot, up, down = X @ Y.T, low @ high.T, low @ high[:, ::-1].T
    own, other = (X * X).sum(axis=1), (Y * Y).sum(axis=1)
    scores = np.zeros(dot.shape)
    for i, j in np.ndindex(dot.shape):
        d, squares = dot[i, j], own[i] + other[j]
        if d == 0:
            continue
        if metric == "recos":
            scores[i, j] = d / abs(down[i, j] if d < 0 else up[i, j])
        elif metric == "cos":
            scores[i, j] = math.sqrt(d * d / (own[i] * other[j])) * (1 if d > 0 else -1)
        else:
            scores[i, j] = 2 * d / squares if metric == "decos" else d / (squares - d)
    return scores


def whole_numbers(seed, *shape, dtype=np.float64):
    """Quarters, whose products add up exactly; some rows are zero, some products too."""
    numbers = np.random.default_rng(seed).integers(-40, 41, shape) / 4
    numbers[3::7] = 0
    return numbers.astype(dtype)


def normal(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def doubtful_rows(kind, dtype, count=24, width=17, seed=3):
    """Rows whose bounds nearly cancel, for every pair of one with another kind of row."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((count, width))
    if kind == "constant":
        rows = np.where(np.arange(count)[:, None] % 2, noise[:, :1], noise)
        rows[::2] -= rows[::2].mean(axis=1, keepdims=True)
    elif kind == "nearly constant":
        rows = np.where(np.arange(count)[:, None] % 2, 3 + 1e-6 * noise, noise)
        rows[::2] -= rows[::2].mean(axis=1, keepdims=True)
    elif kind == "cauchy":
        rows = rng.standard_cauchy((count, width))
    else:  # one huge component, of either sign and anywhere
        rows = noise
        rows[np.arange(count), rng.integers(width, size=count)] = 1e7 * (-1.0) ** np.arange(count)
    return rows.astype(dtype)


DOUBTFUL = ["constant", "nearly constant", "cauchy", "one huge component"]


# --- Against brute force ----------------------------------------------------------------------


@all_dtypes
@all_metrics
@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_all_pairs_equal_brute_force_at_awkward_sizes(n, m, d, metric, dtype):
    X, Y = whole_numbers(1, n, d, dtype=dtype), whole_numbers(2, m, d, dtype=dtype)
    scores = pairwise(X, Y, metric=metric)
    assert (scores.shape, scores.dtype) == ((n, m), dtype)
    tolerance = 1e-15 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(scores, brute(metric, X, Y), rtol=0, atol=tolerance)


@all_dtypes
@all_metrics
@pytest.mark.parametrize(("n", "d"), [(0, 1), (1, 1), (3, 2), (129, 3), (257, 255), (1025, 128)])
def test_aligned_rows_equal_brute_force_at_awkward_sizes(n, d, metric, dtype):
    X, Y = whole_numbers(1, n, d, dtype=dtype), whole_numbers(2, n, d, dtype=dtype)
    scores = paired(X, Y, metric=metric)
    assert (scores.shape, scores.dtype) == ((n,), dtype)
    tolerance = 1e-15 if dtype == np.float64 else 1e-7
    expected = np.diagonal(brute(metric, X, Y))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)


@all_metrics
def test_all_pairs_equal_the_function_broadcast(metric):
    X, Y = normal(1, 40, 9), normal(2, 50, 9)
    broadcast = METRICS[metric].function(X[:, None], Y[None])
    np.testing.assert_allclose(pairwise(X, Y, metric=metric), broadcast, rtol=0, atol=1e-13)
    aligned = METRICS[metric].function(X, Y[:40])
    np.testing.assert_allclose(paired(X, Y[:40], metric=metric), aligned, rtol=0, atol=1e-15)


def test_recos_is_the_default_metric():
    X, Y = normal(1, 6, 5), normal(2, 6, 5)
    expected = brute("recos", X, Y)
    np.testing.assert_allclose(paired(X, Y), np.diagonal(expected), atol=1e-14)
    np.testing.assert_allclose(pairwise(X, Y), expected, atol=1e-14)
    np.testing.assert_allclose(next(iter_pairwise(X, Y)), expected, atol=1e-14)


def test_a_metric_is_given_by_name_or_record():
    X, Y = normal(1, 6, 5), normal(2, 6, 5)
    record = METRICS["tanimoto"]
    np.testing.assert_array_equal(pairwise(X, Y, metric=record), pairwise(X, Y, metric="tanimoto"))
    np.testing.assert_array_equal(paired(X, Y, metric=record), paired(X, Y, metric="tanimoto"))


@all_dtypes
@all_metrics
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 3), (129, 2), (257, 64), (300, 127), (1100, 7)])
def test_one_matrix_with_itself_is_exactly_symmetric(n, d, metric, dtype):
    X = normal(4, n, d, dtype=dtype)
    scores = pairwise(X, metric=metric)
    np.testing.assert_array_equal(scores, scores.T)
    np.testing.assert_allclose(scores, pairwise(X, X.copy(), metric=metric), atol=TOLERANCE[dtype])
    np.testing.assert_allclose(np.diagonal(scores), 1, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("threads", ["1", "3", "8"])
@pytest.mark.parametrize("memory", ["100kB", "1MiB"])
def test_half_the_work_leaves_no_pair_out(monkeypatch, threads, memory):
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    X = whole_numbers(5, 700, 5)
    out = np.full((700, 700), np.nan)
    pairwise(X, memory=memory, out=out)
    np.testing.assert_allclose(out, brute("recos", X, X), rtol=0, atol=1e-15)


# --- However the work is cut --------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["100kB", "333kB", "2MiB", "256MiB", 200_000])
@all_metrics
def test_memory_budget_agnosticism(metric, memory):
    X, Y = whole_numbers(1, 500, 6), whole_numbers(2, 300, 6)
    expected = brute(metric, X, Y)
    scores = pairwise(X, Y, metric=metric, memory=memory)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-15)
    blocks = list(iter_pairwise(X, Y, metric=metric, memory=memory))
    np.testing.assert_allclose(np.concatenate(blocks), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("threads", range(1, 9))
def test_thread_count_agnosticism(monkeypatch, threads):
    monkeypatch.setenv("RECOS_NUM_THREADS", str(threads))
    X, Y = whole_numbers(1, 530, 300), whole_numbers(2, 530, 300)
    for metric in METRICS:
        expected = brute(metric, X, Y)
        scores = pairwise(X, Y, metric=metric)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-15)
        np.testing.assert_allclose(
            paired(X, Y, metric=metric), np.diagonal(expected), rtol=0, atol=1e-15
        )
        # Few rows and many columns: threads share the columns.
        np.testing.assert_allclose(
            pairwise(X[:9], Y, metric=metric), expected[:9], rtol=0, atol=1e-15
        )


def variants(X):
    padded = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    padded[::2, 1::3] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    yield "Fortran order", np.asfortranarray(X)
    yield "strides", padded[::2, 1::3]
    yield "reversed", X[::-1, ::-1].copy()[::-1, ::-1]
    yield "other byte order", X.astype(X.dtype.newbyteorder())
    yield "read-only", frozen
    yield "list", X.tolist()


@all_dtypes
@all_metrics
def test_memory_layout_agnosticism(metric, dtype):
    X, Y = whole_numbers(1, 33, 7, dtype=dtype), whole_numbers(2, 33, 7, dtype=dtype)
    expected, aligned = pairwise(X, Y, metric=metric), paired(X, Y, metric=metric)
    for (name, x), (_, y) in zip(variants(X), variants(Y), strict=True):
        scores = pairwise(x, y, metric=metric)
        assert scores.dtype == (np.float64 if name == "list" else dtype), name
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(
            paired(x, y, metric=metric), aligned, rtol=0, atol=1e-6, err_msg=name
        )
        blocks = list(iter_pairwise(x, y, metric=metric))
        np.testing.assert_allclose(np.concatenate(blocks), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "result"),
    [
        ("float16", "float16"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("bool", "float32"),
        ("int8", "float32"),
        ("uint8", "float32"),
        ("int16", "float32"),
        ("int32", "float64"),
        ("int64", "float64"),
        (">f4", "float32"),
        (">f8", "float64"),
    ],
)
@all_metrics
def test_dtype_of_the_result_follows_the_input(metric, given, result):
    numbers = np.random.default_rng(1).integers(0, 2 if given == "bool" else 9, (2, 21, 6))
    X, Y = numbers.astype(given)
    expected = brute(metric, X, Y)
    tolerance = TOLERANCE[np.dtype(result).type]
    blocks = list(iter_pairwise(X, Y, metric=metric))
    for scores in (pairwise(X, Y, metric=metric), np.concatenate(blocks)):
        assert scores.dtype == result
        np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    scores = paired(X, Y, metric=metric)
    assert scores.dtype == result
    np.testing.assert_allclose(scores, np.diagonal(expected), rtol=0, atol=tolerance)


def test_two_dtypes_give_the_wider_one():
    X, Y = whole_numbers(1, 5, 4, dtype=np.float16), whole_numbers(2, 6, 4, dtype=np.float64)
    for scores in (pairwise(X, Y), pairwise(Y, X).T, next(iter_pairwise(X, Y))):
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, brute("recos", X, Y), rtol=0, atol=1e-15)


def test_no_input_is_changed():
    X, Y = normal(1, 60, 8, dtype=np.float32), doubtful_rows("one huge component", np.float32)
    Y = Y[:, :8].copy()
    X[0] *= np.float32(1e-25)
    before = X.copy(), Y.copy()
    for metric in METRICS:
        pairwise(X, Y, metric=metric)
        pairwise(Y, metric=metric)
        paired(X[:24], Y, metric=metric)
        list(iter_pairwise(X, Y, metric=metric))
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


# --- Results written in place -------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("itself", [True, False])
def test_out_is_filled_and_returned(dtype, order, itself):
    X = whole_numbers(1, 300, 4, dtype=dtype)
    Y = X if itself else whole_numbers(2, 170, 4, dtype=dtype)
    out = np.full((300, len(Y)), np.nan, dtype, order=order)
    given = pairwise(X, None if itself else Y, out=out, memory="150kB")
    assert np.shares_memory(given, out)
    np.testing.assert_allclose(out, brute("recos", X, Y), rtol=0, atol=TOLERANCE[dtype])


def test_out_may_be_a_view_and_nothing_beside_it_is_written():
    X, Y = whole_numbers(1, 40, 4), whole_numbers(2, 30, 4)
    room = np.full((42, 64), np.nan)
    pairwise(X, Y, out=room[1:-1, 1:61:2])
    expected = np.full((42, 64), np.nan)
    expected[1:-1, 1:61:2] = brute("recos", X, Y)
    np.testing.assert_allclose(room, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("out", "got"),
    [
        (np.empty((4, 3)), r"\(4, 3\) of float64"),
        (np.empty((3, 4, 1)), r"\(3, 4, 1\) of float64"),
        (np.empty(12), r"\(12,\) of float64"),
        (np.empty((3, 4), np.float32), r"\(3, 4\) of float32"),
        (np.empty((3, 4), np.dtype(np.float64).newbyteorder()), r"\(3, 4\) of [<>]f8"),
        ([[0.0] * 4] * 3, "list of no dtype"),
    ],
)
def test_out_of_another_kind_shape_or_dtype_is_refused(out, got):
    text = rf"^out: expected a numpy array of shape \(3, 4\) of float64, got {got}$"
    with pytest.raises(ValueError, match=text):
        pairwise(np.ones((3, 2)), np.ones((4, 2)), out=out)


def test_out_that_is_read_only_is_refused():
    out = np.zeros((3, 4))
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"^out: expected a writable array, got a read-only one$"):
        pairwise(np.ones((3, 2)), np.ones((4, 2)), out=out)
    assert not out.any()


# --- Doubtful pairs -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DOUBTFUL)
@all_dtypes
@all_metrics
def test_pairs_whose_bound_nearly_cancels_are_right(metric, dtype, kind):
    X, Y = doubtful_rows(kind, dtype), doubtful_rows(kind, dtype, count=20, seed=5)
    expected = exact(metric, X, Y)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(pairwise(X, Y, metric=metric), expected, rtol=0, atol=tolerance)
    aligned = paired(X[:20], Y, metric=metric)
    np.testing.assert_allclose(aligned, np.diagonal(expected), rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", DOUBTFUL)
@all_dtypes
def test_few_doubtful_pairs_among_many_are_right(dtype, kind):
    X, Y = normal(1, 400, 17, dtype=dtype), normal(2, 300, 17, dtype=dtype)
    rows, columns = [0, 131, 399], [7, 128, 257, 299]
    X[rows] = doubtful_rows(kind, dtype)[[0, 1, 2]]
    Y[columns] = doubtful_rows(kind, dtype, seed=5)[[0, 1, 2, 3]]
    scores = pairwise(X, Y)
    np.testing.assert_allclose(
        scores[rows], exact("recos", X[rows], Y), rtol=0, atol=TOLERANCE[dtype]
    )
    np.testing.assert_allclose(
        scores[:, columns], exact("recos", X, Y[columns]), rtol=0, atol=TOLERANCE[dtype]
    )
    assert not np.isnan(scores).any()


@pytest.mark.parametrize("kind", DOUBTFUL)
@all_dtypes
def test_doubtful_pairs_are_right_in_all_parts_of_a_tile(dtype, kind):
    """More rows and columns than are mended at a time; the exact pairs are a sample."""
    X = doubtful_rows(kind, dtype, count=300)
    Y = doubtful_rows(kind, dtype, count=700, seed=5)
    scores = pairwise(X, Y)
    rows, columns = np.arange(0, 300, 23), np.arange(0, 700, 19)
    np.testing.assert_allclose(
        scores[np.ix_(rows, columns)],
        exact("recos", X[rows], Y[columns]),
        rtol=0,
        atol=TOLERANCE[dtype],
    )
    aligned = paired(X, Y[:300])
    np.testing.assert_allclose(scores.diagonal(), aligned, rtol=0, atol=TOLERANCE[dtype])


@all_dtypes
def test_constant_rows_saturate(dtype):
    """A constant row has recos ±1 with every row not orthogonal to it."""
    X = np.full((3, 5), [[2.5], [-0.1], [1e-3]], dtype)
    Y = normal(1, 50, 5, dtype=dtype)
    Y[0], Y[1] = [1, -1, 0, 3, -3], 0
    sums = np.array([math.fsum(row) for row in Y.tolist()])
    expected = np.sign([[2.5], [-0.1], [1e-3]]) * np.sign(sums)
    assert (sums == 0).sum() == 2
    tolerance = 1e-15 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(pairwise(X, Y), expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(pairwise(Y, X), expected.T, rtol=0, atol=tolerance)


@all_dtypes
@all_metrics
def test_zero_rows_score_zero(metric, dtype):
    X, Y = normal(1, 140, 9, dtype=dtype), normal(2, 150, 9, dtype=dtype)
    X[[0, 139]], Y[[3, 77]] = 0, -0.0
    scores = pairwise(X, Y, metric=metric)
    zero = np.zeros((140, 150), bool)
    zero[[0, 139]] = zero[:, [3, 77]] = True
    np.testing.assert_array_equal(scores == 0, zero)
    np.testing.assert_array_equal(paired(X, Y[:140], metric=metric) == 0, zero.diagonal())
    np.testing.assert_array_equal(pairwise(np.zeros((2, 3), dtype), metric=metric), 0)


@all_metrics
@pytest.mark.parametrize(
    ("dtype", "small", "large"), [(np.float32, 1e-30, 1e30), (np.float64, 1e-290, 1e290)]
)
def test_extreme_scales_are_right(metric, dtype, small, large):
    X, Y = normal(1, 12, 9, dtype=dtype), normal(2, 15, 9, dtype=dtype)
    X[::3] *= dtype(small)
    X[1::3] *= dtype(large)
    Y[1::4] *= dtype(small)
    Y[2::4] *= dtype(large)
    expected = exact(metric, X, Y)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(pairwise(X, Y, metric=metric), expected, rtol=0, atol=tolerance)
    aligned = paired(X, Y[:12], metric=metric)
    np.testing.assert_allclose(aligned, expected.diagonal(), rtol=0, atol=tolerance)


@all_metrics
@pytest.mark.parametrize("size", [1e-170, 1e-155, 1e155, 1e200])
@pytest.mark.parametrize("count", [3, 3000])
def test_rows_whose_squares_leave_the_range_are_right(metric, size, count):
    X = whole_numbers(1, count, 8)
    expected = brute(metric, X[:3], X)
    tolerance = 1e-13
    scores = pairwise(X[:3] * size, X * size, metric=metric)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    aligned = paired(X * size, X[::-1] * size, metric=metric)
    expected = paired(X, X[::-1], metric=metric)
    np.testing.assert_allclose(aligned, expected, rtol=0, atol=tolerance)


@all_metrics
@all_dtypes
def test_subnormal_rows_are_right(metric, dtype):
    tiny = float(np.finfo(dtype).smallest_subnormal)
    X = (np.array([[3, -1, 2], [5, 5, 4], [0, 0, 1]]) * tiny).astype(dtype)
    expected = exact(metric, X, X)
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(pairwise(X, metric=metric), expected, rtol=0, atol=tolerance)
    aligned = paired(X, X[::-1], metric=metric)
    np.testing.assert_allclose(aligned, expected[:, ::-1].diagonal(), rtol=0, atol=tolerance)


@all_dtypes
@all_metrics
def test_scores_stay_within_the_range_of_the_metric(metric, dtype):
    X = np.concatenate([normal(1, 60, 33, dtype=dtype), np.ones((2, 33), dtype)])
    X = np.concatenate([X, -X, 3 * X])
    low, high = METRICS[metric].range
    for scores in (pairwise(X, metric=metric), paired(X, X[::-1], metric=metric)):
        assert scores.min() >= dtype(low)
        assert scores.max() <= high


# --- Errors -------------------------------------------------------------------------------------

EVERY = [
    paired,
    pairwise,
    lambda X, Y, **options: pairwise(X, Y, out=np.empty((len(X), len(Y)), order="F"), **options),
    iter_pairwise,  # raises before the first block
]
every_function = pytest.mark.parametrize(
    "function", EVERY, ids=["paired", "pairwise", "pairwise-out", "iter_pairwise"]
)


@every_function
@all_metrics
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["X", "Y"])
@pytest.mark.parametrize("rows", [[0], [3, 5], [899], [700, 800]])
def test_the_first_row_that_is_not_finite_is_named(function, metric, bad, name, rows):
    X, Y = normal(1, 900, 200), normal(2, 900, 200)
    (X if name == "X" else Y)[rows, 7] = bad
    text = (
        rf"^{name}: expected finite numbers, got NaN or infinity in row {rows[0]}; find such rows "
        rf"with ~isfinite\({name}\)\.all\(axis=-1\), then drop or mend them$"
    )
    with pytest.raises(ValueError, match=text):
        function(X, Y, metric=metric)


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("name", ["X", "Y"])
def test_the_first_bad_row_does_not_depend_on_the_budget(monkeypatch, threads, name):
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    X, Y = normal(1, 900, 20), normal(2, 900, 20)
    (X if name == "X" else Y)[[555, 600, 899]] = np.inf
    for memory in ("100kB", "1MB", "256MiB"):
        for function in (pairwise, iter_pairwise):
            with pytest.raises(ValueError, match=rf"^{name}: .* in row 555;"):
                function(X, Y, memory=memory)


@pytest.mark.parametrize("function", [pairwise, iter_pairwise])
def test_a_matrix_with_itself_is_called_x_in_errors(function):
    X = normal(1, 30, 4)
    X[17, 0] = np.nan
    with pytest.raises(ValueError, match=r"^X: expected finite numbers, .* in row 17;"):
        function(X)


@pytest.mark.parametrize("function", [pairwise, iter_pairwise])
@pytest.mark.parametrize("name", ["X", "Y"])
def test_rows_that_are_not_finite_raise_beside_an_empty_matrix(function, name):
    X, Y = np.full((2, 3), np.nan), np.empty((0, 3))
    with pytest.raises(ValueError, match=rf"^{name}: .* in row 0;"):
        function(*((X, Y) if name == "X" else (Y, X)))


@every_function
def test_vectors_of_different_lengths_are_refused(function):
    text = (
        r"^X and Y: expected vectors of the same length, got 3 and 4 "
        r"\(shapes \(2, 3\) and \(2, 4\)\); compare vectors that one model made$"
    )
    with pytest.raises(ValueError, match=text):
        function(np.ones((2, 3)), np.ones((2, 4)))


@every_function
@pytest.mark.parametrize(
    ("X", "Y", "name", "shape"),
    [
        (np.ones(3), np.ones((2, 3)), "X", r"\(3,\)"),
        (np.ones((2, 3)), np.ones(3), "Y", r"\(3,\)"),
        (np.ones((2, 2, 3)), np.ones((2, 3)), "X", r"\(2, 2, 3\)"),
    ],
)
def test_what_is_no_matrix_is_refused(function, X, Y, name, shape):
    text = (
        rf"^{name}: expected a matrix of shape \(rows, components\), got shape {shape}; "
        r"a single vector v is the matrix v\[None, :\]$"
    )
    with pytest.raises(ValueError, match=text):
        function(X, Y)


@every_function
def test_rows_without_components_are_refused(function):
    with pytest.raises(ValueError, match=r"^X: expected vectors of at least one number, got \(2, "):
        function(np.ones((2, 0)), np.ones((2, 0)))


@every_function
@pytest.mark.parametrize("dtype", ["complex128", "object", "U3", "datetime64[s]"])
def test_what_is_no_real_number_is_refused(function, dtype):
    with pytest.raises(TypeError, match=r"^X: expected real numbers"):
        function(np.ones((2, 3)).astype(dtype), np.ones((2, 3)))


@every_function
def test_unknown_metrics_are_refused(function):
    text = "^metric: expected one of recos, cos, decos, tanimoto, got 'cosine'$"
    with pytest.raises(ValueError, match=text):
        function(np.ones((2, 3)), np.ones((2, 3)), metric="cosine")


def test_aligned_rows_must_be_as_many():
    text = (
        "^X and Y: expected as many rows in each, got 2 and 3; "
        "pairwise compares all rows with all rows$"
    )
    with pytest.raises(ValueError, match=text):
        paired(np.ones((2, 4)), np.ones((3, 4)))
    with pytest.raises(ValueError, match="got 1 and 3;"):
        paired(np.ones((1, 4)), np.ones((3, 4)))


@pytest.mark.parametrize("function", [pairwise, iter_pairwise])
@pytest.mark.parametrize("memory", ["much", 0, -1, "0MiB", True, 1.5, None])
def test_bad_budgets_are_refused(function, memory):
    with pytest.raises(ValueError, match=r"^memory: expected a positive number of bytes or a text"):
        function(np.ones((2, 3)), memory=memory)


@pytest.mark.parametrize("function", [pairwise, iter_pairwise])
@pytest.mark.parametrize(
    ("n", "m", "d", "dtype", "least"),
    [
        (5, 3, 100, np.float64, 4 * 3 * 8 * 100),
        (5, 3, 100, np.float32, 4 * 3 * 4 * 100),
        (2, 1000, 3, np.float64, 4 * 2 * 8 * 1000),
        (2, 1000, 3, np.float16, 4 * 2 * 4 * 1000),
    ],
)
def test_a_budget_too_small_says_what_is_needed(function, n, m, d, dtype, least):
    X, Y = np.ones((n, d), dtype), np.ones((m, d), dtype)
    text = (
        f"^memory: expected at least {least} bytes for {m} rows of {d} numbers, got less; "
        "give more, or compare with fewer rows at a time$"
    )
    with pytest.raises(ValueError, match=text):
        function(X, Y, memory=least - 1)
    blocks = function(X, Y, memory=least)
    np.testing.assert_allclose(np.concatenate(list(blocks)).ravel(), 1, atol=1e-6)


def test_errors_are_raised_at_the_call_and_not_at_the_first_block():
    with pytest.raises(ValueError, match=r"^metric:"):
        iter_pairwise(np.ones((2, 3)), metric="x")
    with pytest.raises(ValueError, match=r"^memory:"):
        iter_pairwise(np.ones((2, 3)), memory="x")
    with pytest.raises(ValueError, match=r"^X:"):
        iter_pairwise(np.full((2, 3), np.nan))


# --- Blocks -------------------------------------------------------------------------------------


@all_dtypes
@pytest.mark.parametrize("itself", [True, False])
def test_blocks_are_consecutive_and_never_overwritten(dtype, itself):
    X = whole_numbers(1, 400, 5, dtype=dtype)
    Y = X if itself else whole_numbers(2, 130, 5, dtype=dtype)
    blocks, copies = [], []
    for block in iter_pairwise(X, None if itself else Y, memory="200kB"):
        blocks.append(block)
        copies.append(block.copy())
    assert len(blocks) > 3
    assert {block.dtype for block in blocks} == {np.dtype(dtype)}
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(blocks, 2))
    for block, copy in zip(blocks, copies, strict=True):
        np.testing.assert_array_equal(block, copy)
    np.testing.assert_allclose(np.concatenate(blocks), brute("recos", X, Y), rtol=0, atol=1e-6)


def test_blocks_are_as_few_as_the_budget_allows():
    X = whole_numbers(1, 400, 5)
    assert len(list(iter_pairwise(X, memory="256MiB"))) == 1
    counts = [len(list(iter_pairwise(X, memory=f"{size}kB"))) for size in (100, 200, 400, 800)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_no_rows_give_no_blocks():
    assert list(iter_pairwise(np.empty((0, 3)), np.ones((2, 3)))) == []
    assert [block.shape for block in iter_pairwise(np.ones((2, 3)), np.empty((0, 3)))] == [(2, 0)]


# --- Threads ------------------------------------------------------------------------------------


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_concurrent_callers_get_their_own_results(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "3")
    before = blas_threads()
    start = threading.Barrier(4)

    def call(seed):
        X, Y = whole_numbers(seed, 200, 40), whole_numbers(seed + 50, 160, 40)
        metric = list(METRICS)[seed % 4]
        start.wait()
        for _ in range(3):
            scores = pairwise(X, Y, metric=metric, memory="1MiB")
            np.testing.assert_allclose(scores, brute(metric, X, Y), rtol=0, atol=1e-15)
            blocks = np.concatenate(list(iter_pairwise(X, Y, metric=metric, memory="300kB")))
            np.testing.assert_allclose(blocks, scores, rtol=0, atol=1e-15)
            aligned = paired(X[:160], Y, metric=metric)
            np.testing.assert_allclose(aligned, scores.diagonal(), rtol=0, atol=1e-15)
        return seed

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(4))) == list(range(4))
    assert before
    assert blas_threads() == before


def test_blas_threads_are_restored_after_an_error(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    before = blas_threads()
    X = normal(1, 600, 300)
    X[599, 0] = np.nan
    with pytest.raises(ValueError, match="in row 599;"):
        pairwise(normal(2, 600, 300), X)
    with pytest.raises(ValueError, match="in row 599;"):
        paired(normal(2, 600, 300), X)
    assert before
    assert blas_threads() == before


def test_blocks_left_behind_leave_blas_as_it_was(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "2")
    before = blas_threads()
    blocks = iter_pairwise(normal(1, 600, 30), memory="300kB")
    next(blocks)
    assert blas_threads() == before
    blocks.close()
    assert blas_threads() == before


def test_a_bad_thread_count_is_refused(monkeypatch):
    monkeypatch.setenv("RECOS_NUM_THREADS", "many")
    with pytest.raises(ValueError, match=r"^RECOS_NUM_THREADS: "):
        pairwise(np.ones((2, 3)))


# --- Progress -----------------------------------------------------------------------------------


def test_progress_of_aligned_rows_names_the_metric(capsys):
    X = normal(1, 3000, 100)
    paired(X, X, metric="cos", progress=True)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("\rpaired cos: ")
    assert written.err.endswith("100 %, 0 s left \n")


def test_progress_of_all_pairs_is_shown_when_asked_for(capsys):
    X = normal(1, 500, 10)
    pairwise(X, metric="decos", progress=True)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("\rpairwise decos: ")
    assert written.err.endswith("100 %, 0 s left \n")


@pytest.mark.parametrize("progress", [None, False])
def test_progress_is_silent_where_nobody_looks(capsys, progress):
    X = normal(1, 3000, 100)
    paired(X, X, progress=progress)
    pairwise(X[:300], progress=progress)
    assert capsys.readouterr() == ("", "")


def test_the_functions_of_two_vectors_never_show_progress(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("time.monotonic", iter(range(0, 10**6, 100)).__next__)
    X = normal(1, 3000, 100)
    recos.recos(X, X)
    assert capsys.readouterr().err == ""


def test_out_has_memory_of_its_own():
    X = np.ones((4, 4))
    for out, Y in ((X, None), (X.T, None), (X, np.zeros((4, 4))), (X, X[::-1])):
        with pytest.raises(ValueError, match=r"^out: expected memory of its own"):
            pairwise(X, Y, out=out)

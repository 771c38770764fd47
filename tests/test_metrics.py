"""The four similarities and the chain of bounds: shapes, dtypes, scales, contracts, errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle import SIMILARITIES, exact

import recos
from recos import METRICS, bounds

LARGE = 2**17  # numbers from which on NumPy inputs go in blocks


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


# Shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape_u", "shape_v", "axis"),
    [
        ((3,), (3,), -1),
        ((3,), (3,), 0),
        ((4, 3), (3,), -1),
        ((3,), (4, 3), -1),
        ((4, 1, 3), (5, 3), -1),
        ((1, 3), (4, 3), -1),
        ((3, 4), (3, 4), 0),
        ((3, 4), (3,), 0),
        ((2, 3, 4), (3, 4), -2),
        ((2, 3, 4), (2, 3, 4), 1),
        ((0, 3), (0, 3), -1),
        ((0, 3), (3,), -1),
        ((2, 1), (2, 1), -1),
    ],
)
def test_broadcasts_as_vecdot_does(metric, shape_u, shape_v, axis, rng):
    u, v = rng.standard_normal(shape_u), rng.standard_normal(shape_v)
    expected = np.vecdot(u, v, axis=axis)
    chain = bounds(u, v, axis=axis)
    np.testing.assert_allclose(chain.dot, expected, atol=1e-14)
    scores = metric.function(u, v, axis=axis)
    assert {np.shape(x) for x in (scores, *chain)} == {expected.shape}
    last_u, last_v = np.moveaxis(u, axis, -1), np.moveaxis(v, axis, -1)
    pairs = [np.broadcast_to(x, (*expected.shape, x.shape[-1])) for x in (last_u, last_v)]
    for place in np.ndindex(expected.shape):
        exactly = SIMILARITIES[metric.name](*(x[place] for x in pairs))
        assert scores[place] == pytest.approx(float(exactly), abs=1e-14)


@pytest.mark.parametrize(
    ("shape_u", "shape_v"),
    [
        ((900, 300), (900, 300)),
        ((900, 300), (300,)),
        ((1, 300), (900, 300)),
        ((30, 30, 300), (30, 30, 300)),
        ((30, 30, 300), (30, 300)),
        ((30, 1, 300), (1, 30, 300)),
        ((1, 2**18), (1, 2**18)),
        ((2**18,), (2**18,)),
    ],
)
def test_large_inputs_broadcast_too(metric, shape_u, shape_v, rng):
    u, v = rng.standard_normal(shape_u), rng.standard_normal(shape_v)
    scores = metric.function(u, v)
    assert np.shape(scores) == np.broadcast_shapes(shape_u[:-1], shape_v[:-1])
    whole_u, whole_v = np.broadcast_arrays(u, v)
    for place in list(np.ndindex(np.shape(scores)))[:: max(1, np.size(scores) // 7)]:
        alone = metric.function(whole_u[place], whole_v[place])
        assert scores[place] == pytest.approx(alone, abs=1e-13)


def test_two_vectors_give_numpy_scalars(metric):
    assert type(metric.function([1, 2], [3, 4])) is np.float64
    chain = bounds(np.float32([1, 2]), np.float32([3, 4]))
    assert {type(x) for x in chain} == {np.float32}
    assert chain._fields == ("dot", "rearrangement", "cauchy_schwarz", "mean_square")


# The registry ---------------------------------------------------------------------------------


def test_registry_is_keyed_and_ordered_by_name():
    assert list(METRICS) == ["recos", "cos", "decos", "tanimoto"]
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.function is getattr(recos, name)
        assert metric.function.__name__ == name


def test_registry_tells_the_range_and_what_scaling_does(metric, rng):
    rows = rng.integers(-3, 4, (200, 1, 2))
    scores = metric.function(rows, rows.swapaxes(0, 1))
    assert (scores.min(), scores.max()) == pytest.approx(metric.range)
    doubled = metric.function(2 * rows, rows.swapaxes(0, 1))
    assert np.allclose(scores, doubled) == metric.scale_invariant


def test_registry_tells_which_bound_divides(metric, rng):
    u, v = rng.standard_normal((2, 50, 5))
    chain = bounds(u, v)
    divisor = {
        "rearrangement": chain.rearrangement,
        "Cauchy-Schwarz": chain.cauchy_schwarz,
        "mean square": chain.mean_square,
        "union": 2 * chain.mean_square - chain.dot,
    }[metric.bound]
    np.testing.assert_allclose(metric.function(u, v), chain.dot / divisor, rtol=1e-13)


@pytest.mark.parametrize("name", ["cosine", "RECOS", "", None, 3])
def test_unknown_metric_is_answered_with_the_known_ones(name):
    with pytest.raises(ValueError, match=rf"{', '.join(METRICS)}, got {name!r}"):
        recos.paired([[1.0]], [[1.0]], metric=name)


def test_a_metric_stands_for_its_name(metric):
    rows = [[1.0, 2.0], [3.0, -1.0]]
    for compute in (recos.paired, recos.pairwise):
        by_record, by_name = (compute(rows, rows, metric=m) for m in (metric, metric.name))
        np.testing.assert_array_equal(by_record, by_name)


# Rounding keeps what is exact in theory -------------------------------------------------------

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
any_float32_pair = st.integers(1, 12).flatmap(
    lambda d: st.tuples(*[hnp.arrays(np.float32, d, elements=floats32)] * 2)
)
any_float64_pair = st.integers(1, 12).flatmap(
    lambda d: st.tuples(
        *[hnp.arrays(np.float64, d, elements=st.floats(allow_nan=False, allow_infinity=False))] * 2
    )
)
any_pair = st.one_of(any_float32_pair, any_float64_pair)


@given(any_pair)
def test_chain_ascends_whatever_is_rounded(pair):
    chain = bounds(*pair)
    assert abs(chain.dot) <= chain.rearrangement <= chain.cauchy_schwarz <= chain.mean_square


@given(any_pair)
def test_scores_stay_in_range_whatever_is_rounded(pair):
    for metric in METRICS.values():
        score = metric.function(*pair)
        assert metric.range[0] <= float(score) <= 1
        assert score.dtype == pair[0].dtype


@given(any_pair)
def test_hierarchy_holds_up_to_rounding(pair):
    r, c, d = (abs(float(METRICS[name].function(*pair))) for name in ("recos", "cos", "decos"))
    least = {4: 1e-6, 8: 1e-14}[pair[0].itemsize]
    assert d <= c + least
    assert c <= r + least


@given(any_float32_pair)
def test_any_float32_vectors_score_as_exact_arithmetic_says(pair):
    for name, metric in METRICS.items():
        exactly = float(SIMILARITIES[name](*pair))
        assert float(metric.function(*pair)) == pytest.approx(exactly, abs=2e-6), name


# Scales ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "exponents"),
    [
        ("float32", (-30, -20, -7, 0, 7, 20, 30)),
        ("float64", (-300, -160, -80, 0, 80, 160, 300)),
    ],
)
@pytest.mark.parametrize("d", [3, 400])
def test_extreme_lengths_score_as_unit_lengths_do(metric, dtype, exponents, d, rng):
    u, v = rng.standard_normal((2, 60, d))
    u, v = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (u, v))
    within = {"float32": 2e-6, "float64": 1e-13}[dtype]
    unit = metric.function(u, v)
    for exponent in exponents:
        scale = 10.0**exponent
        scaled_u, scaled_v = (u * scale).astype(dtype), (v * scale).astype(dtype)
        for scores in (
            metric.function(scaled_u, scaled_v),
            recos.paired(scaled_u, scaled_v, metric=metric.name),
            np.diagonal(recos.pairwise(scaled_u, scaled_v, metric=metric.name)),
        ):
            np.testing.assert_allclose(scores, unit, rtol=0, atol=within)


@pytest.mark.parametrize("d", [3, 400])
def test_extreme_lengths_may_differ_between_rows_and_sides(d, rng):
    u, v = rng.standard_normal((2, 61, d))
    by_row = (10.0 ** np.linspace(-30, 30, 61))[:, None]
    for name in ("recos", "cos"):
        expected = METRICS[name].function(u, v)
        scaled_u, scaled_v = (u * by_row).astype(np.float32), (v / by_row).astype(np.float32)
        scores = METRICS[name].function(scaled_u, scaled_v)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-6)
        scores = recos.pairwise(scaled_u, scaled_v, metric=name)
        np.testing.assert_allclose(np.diagonal(scores), expected, rtol=0, atol=2e-6)


def test_lengths_too_far_apart_for_a_quotient_score_0():
    tiny, huge = np.full((2, 3), 1e-300), np.full((2, 3), 1e300)
    for name in ("decos", "tanimoto"):
        for scores in (
            METRICS[name].function(tiny, huge),
            METRICS[name].function(huge, tiny),
            recos.pairwise(tiny, huge, metric=name),
        ):
            assert (abs(scores) < 1e-300).all()
    np.testing.assert_allclose(recos.cos(tiny, huge), 1, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_smallest_and_largest_numbers(dtype):
    info = np.finfo(dtype)
    for number in (info.smallest_subnormal, info.tiny, info.max):
        row = np.array([[number, -number, number]], dtype)
        for metric in METRICS.values():
            assert metric.function(row, row) == pytest.approx(1, abs=1e-6), metric.name
            assert metric.function(row, -row) == pytest.approx(metric.range[0], abs=1e-6)
            assert recos.pairwise(row, metric=metric.name) == pytest.approx(1, abs=1e-6)


def test_bounds_have_a_scale():
    u, v = np.array([3.0, 4.0]), np.array([8.0, 6.0])
    for exponent in (-100, 100, -500):
        chain = bounds(np.ldexp(u, exponent), v)
        expected = [np.ldexp(x, exponent) for x in (48, 50, 50)]
        np.testing.assert_allclose(chain[:3], expected, rtol=1e-15)
    assert bounds(np.full(2, 1e200), np.full(2, 1e200)).dot == math.inf


# Zeros ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 5, 700])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool"])
def test_zero_rows_score_0_beside_others(metric, dtype, d):
    rows = np.ones((400, d), dtype)
    rows[::2] = 0
    scores = metric.function(rows, np.ones_like(rows))
    np.testing.assert_allclose(scores, np.arange(400) % 2, rtol=1e-6)
    assert not metric.function(rows, np.zeros_like(rows)).any()
    assert not recos.pairwise(rows, metric=metric.name)[::2].any()


def test_zero_over_zero_scores_0(metric):
    for d in (2, 1000):
        u, v = np.ones((150, d)), np.ones((150, d))
        u[:, ::2] = -1
        assert not metric.function(u, v).any()
        assert not recos.pairwise(u[:20], v[:20], metric=metric.name).any()


# Input kinds ----------------------------------------------------------------------------------


def layouts(x):
    """Return the same numbers in every layout that NumPy knows."""
    apart = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
    apart[::2, ::3] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape)
    return {
        "big-endian": x.astype(x.dtype.newbyteorder(">")),
        "little-endian": x.astype(x.dtype.newbyteorder("<")),
        "read-only": read_only,
        "strided": apart[::2, ::3],
        "Fortran": np.asfortranarray(x),
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned": unaligned,
        "lists": x.tolist(),
        "tuple of arrays": tuple(x),
    }


@pytest.mark.parametrize("rows", [4, 600])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_layout_of_the_input_does_not_matter(metric, dtype, rows, rng):
    x, y = (100 * rng.standard_normal((2, rows, 230))).astype(dtype)
    expected = metric.function(x, y)
    table = recos.pairwise(x, y, metric=metric.name)
    within = 1e-6 if dtype == "float32" else 1e-14
    for name, same in layouts(x).items():
        scores = metric.function(same, y)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=within, err_msg=name)
        assert scores.dtype.isnative
        again = recos.pairwise(same, y, metric=metric.name)
        np.testing.assert_allclose(again, table, rtol=0, atol=within, err_msg=name)


class OnlyArrayInterface:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x if dtype is None else self.x.astype(dtype)


class OnlyDLPack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("wrap", [OnlyArrayInterface, OnlyDLPack, memoryview])
def test_other_holders_of_numbers_give_numpy_results(metric, wrap, rng):
    x, y = rng.standard_normal((2, 7, 5)).astype(np.float32)
    scores = metric.function(wrap(x), wrap(y))
    assert isinstance(scores, np.ndarray)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, metric.function(x, y))
    beside_a_list = metric.function(wrap(x), y.tolist())
    np.testing.assert_allclose(beside_a_list, scores, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("bool", "float32"),
        ("int8", "float32"),
        ("uint8", "float32"),
        ("int16", "float32"),
        ("uint16", "float32"),
        ("int32", "float64"),
        ("uint32", "float64"),
        ("int64", "float64"),
        ("uint64", "float64"),
        ("float16", "float16"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
@pytest.mark.parametrize("rows", [3, 900])
def test_floating_family_out(metric, dtype, result, rows, rng):
    x, y = rng.integers(0, 2, (2, rows, 150)).astype(dtype)
    scores = metric.function(x, y)
    assert scores.dtype == result
    expected = metric.function(x.astype(float), y.astype(float))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-3 if result == "float16" else 1e-7)
    assert {b.dtype for b in bounds(x, y)} == {np.dtype(result)}
    assert recos.pairwise(x[:3], y[:3], metric=metric.name).dtype == result


@pytest.mark.parametrize(
    ("one", "other", "result"),
    [
        ("float16", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("float16", "int8", "float32"),
        ("float32", "bool", "float32"),
        ("float32", "int64", "float64"),
        ("float32", "float64", "float64"),
    ],
)
def test_two_families_meet_in_the_wider_one(metric, one, other, result):
    u, v = np.array([1, 0, 1], one), np.array([1, 1, 0], other)
    assert metric.function(u, v).dtype == metric.function(v, u).dtype == result


def test_small_integers_do_not_wrap_around():
    u, v = np.array([127, -128, 127], np.int8), np.array([-128, 127, 100], np.int8)
    assert bounds(u, v).dot == np.float32(127 * -128 * 2 + 127 * 100)
    assert bounds(np.uint8([200, 100]), np.uint8([100, 200])).dot == 40000
    assert bounds(np.int16([32767] * 4), np.int16([32767] * 4)).dot == np.float32(4 * 32767**2)
    assert recos.recos([-(2**63), 1], [-(2**63), 1]) == 1


def test_large_integers_keep_their_differences():
    assert recos.recos([16777217, -16777216], [1, 1]) == 1
    assert recos.recos([16777217, -16777217], [1, 1]) == 0


def test_float16_sums_in_a_wider_type(metric):
    u = np.full(4096, 300, np.float16)  # one product alone is beyond float16
    assert metric.function(u, u) == 1
    assert metric.function(u, -u) == np.float16(metric.range[0])


def test_negative_rows_are_not_cut_off_at_0(metric, rng):
    u = -1 - rng.random((50, 8))
    scores = metric.function(u, np.roll(u, 1, axis=-1))
    assert (scores > 0.5).all()
    against = metric.function(u, -np.roll(u, 1, axis=-1))
    assert (against < -0.2).all()
    for place in range(50):
        exactly = SIMILARITIES[metric.name](u[place], -np.roll(u[place], 1))
        assert against[place] == pytest.approx(float(exactly), abs=1e-14)


@pytest.mark.parametrize("rows", [5, 700])
def test_inputs_are_never_changed(rows, rng):
    x, y = rng.standard_normal((2, rows, 200)) * 10.0 ** rng.integers(-200, 200, (2, rows, 1))
    before = x.copy(), y.copy()
    for metric in METRICS.values():
        metric.function(x, y)
        recos.pairwise(x[:50], y[:50], metric=metric.name)
    bounds(x, y)
    recos.similar(x, y)
    recos.concordance(x, y)
    np.testing.assert_array_equal(before, (x, y))


def test_results_do_not_share_memory_with_inputs():
    x = np.array([[2.0]])
    for result in (*bounds(x, x), recos.cos(x, x)):
        assert not np.shares_memory(result, x)


# Bad input ------------------------------------------------------------------------------------

CALLS = {
    **{name: metric.function for name, metric in METRICS.items()},
    "bounds": bounds,
    "similar": recos.similar,
    "discordant": recos.discordant,
    "concordance": recos.concordance,
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("rows", "first"), [(5, 2), (5, 0), (2000, 1303)])
@pytest.mark.parametrize("side", [0, 1])
def test_first_row_that_is_not_finite_is_named(call, bad, rows, first, side):
    pair = [np.ones((rows, 150)), np.ones((rows, 150))]
    pair[side][first, 7] = bad
    pair[side][-1, 3] = -bad
    name = "uv"[side]
    message = rf"^{name}: expected finite numbers, got NaN or infinity in row {first};"
    with pytest.raises(ValueError, match=message):
        call(*pair)


def test_nan_hides_neither_behind_infinity_nor_in_a_long_vector(call):
    with pytest.raises(ValueError, match=r"^v: expected finite numbers, got NaN or infinity;"):
        call([1.0, 2.0, 3.0], [np.inf, np.nan, -np.inf])
    long = np.ones(2**18)
    with_nan = long.copy()
    with_nan[-1] = np.nan
    with pytest.raises(ValueError, match=r"^v: expected finite numbers, got NaN or infinity"):
        call(long, with_nan)


def test_float16_infinity_is_named(call):
    with pytest.raises(ValueError, match=r"^u: expected finite numbers"):
        call(np.float16([np.inf, 1]), np.float16([1, 1]))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1j, 2], "complex128"),
        (["a", "b"], "<U1"),
        ([b"a", b"b"], r"\|S1"),
        ([None, 1], "object"),
        ([2**70, 1], "object"),
        ([Fraction(1, 2), 1], "object"),
        (np.array([1, 2], "m8[s]"), "timedelta64"),
        (np.array([1, 2], "M8[s]"), "datetime64"),
    ],
)
def test_numbers_that_are_not_real_are_refused_by_dtype(call, values, dtype):
    with pytest.raises(TypeError, match=rf"^v: expected real numbers \(.*\), got dtype {dtype}"):
        call([1.0, 2.0], values)


@pytest.mark.skipif(np.finfo(np.longdouble).bits == 64, reason="long double is float64 here")
def test_long_double_is_refused(call):
    with pytest.raises(TypeError, match=r"expected real numbers .*float(80|96|128)"):
        call(np.ones(2, np.longdouble), np.ones(2))


def test_lengths_that_differ_are_refused(call):
    with pytest.raises(ValueError, match=r"vectors of the same length, got 3 and 2 \(shapes"):
        call(np.ones((4, 3)), np.ones((4, 2)))


def test_rows_that_do_not_broadcast_are_refused(call):
    with pytest.raises(ValueError, match=r"(shape mismatch|broadcast)"):
        call(np.ones((4, 3)), np.ones((5, 3)))


def test_rows_that_do_not_broadcast_are_refused_when_large_too(metric):
    with pytest.raises(ValueError, match=r"(shape mismatch|broadcast)"):
        metric.function(np.ones((2000, 150)), np.ones((1999, 150)))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0)])
def test_vectors_of_no_numbers_are_refused(call, shape):
    with pytest.raises(ValueError, match="u: expected vectors of at least one number"):
        call(np.ones(shape), np.ones(shape))


@pytest.mark.parametrize(
    ("u", "axis"), [(1.0, -1), (1.0, 0), ([1.0], 1), ([1.0], -2), ([[1.0]], 2)]
)
def test_missing_axis_is_refused(call, u, axis):
    with pytest.raises(ValueError, match=rf"u: expected an array with an axis {axis} to compare"):
        call(u, [1.0], axis=axis)


def test_ragged_lists_are_refused(call):
    with pytest.raises(ValueError, match="inhomogeneous"):
        call([[1, 2], [3]], [1, 2])


def test_vectors_are_positional_and_the_axis_is_named(call):
    with pytest.raises(TypeError, match="keyword"):
        call(u=[1, 2], v=[1, 2])
    with pytest.raises(TypeError, match="positional"):
        call([1, 2], [1, 2], -1)


@given(any_float64_pair)
def test_dot_product_has_the_exact_sign_where_rounding_cannot_hide_it(pair):
    terms = exact(*pair)
    if abs(terms.dot) > Fraction(1, 10**12) * terms.cauchy_schwarz:
        assert np.sign(recos.recos(*pair)) == (1 if terms.dot > 0 else -1)

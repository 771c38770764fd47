"""Profiles: what is certified of a bound holds in exact arithmetic, whatever the rows."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracle import exact, root

from recos import METRICS
from recos.profiles import Norms, Profiles, describe, fit, largest_rank

DTYPES = [np.float32, np.float64]


def normal(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rows_of(kind, n=14, d=9):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d))
    if kind == "heavy tails":
        X = rng.standard_cauchy((n, d)) ** 3
    elif kind == "one hot":
        X = np.eye(d)[rng.integers(0, d, n)] * rng.choice([1, -3], (n, 1))
    elif kind == "near ties":
        X = 1 + 1e-7 * X
    elif kind == "all scales":
        X *= 10.0 ** rng.integers(-30, 31, (n, 1))
    elif kind == "all scales within":
        X *= 10.0 ** rng.integers(-30, 31, (n, d))
    elif kind == "negative":
        X = -np.abs(X)
    elif kind == "zeros":
        X[::2] = 0
    return X


KINDS = ["normal", "heavy tails", "one hot", "near ties", "negative", "zeros"]
KINDS += ["all scales", "all scales within"]


def inner(u, v):
    """Return the exact product of stored numbers, the last of which are residuals."""
    return sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(u, v, strict=True))


def assert_certified(shape, X, Y, few=None):
    """Check |exact bound - product of coordinates| <= product of residuals, for both signs."""
    few = shape.rank if few is None else few
    left, right = shape.transform(X), shape.transform(Y)
    ups, downs = shape.as_queries(left)
    rest_left, rest_right = left.residual(few), right.residual(few)
    for i, u in enumerate(X):
        for j, v in enumerate(Y):
            terms = exact(u, v)
            size = terms.cauchy_schwarz
            if not size:
                continue
            room = inner(rest_left[i : i + 1], rest_right[j : j + 1])
            for true, side in ((terms.up, ups), (-terms.down, downs)):
                estimate = inner(side[i, :few], right.table[j, :few])
                assert abs(true / size - estimate) <= room, (i, j)


# --- Certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [1, 3, 9])
def test_profiles_bound_rows_of_every_kind(kind, dtype, rank):
    X = rows_of(kind).astype(dtype)
    assert_certified(Profiles.fit(X, rank), X, X)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_profiles_bound_rows_unlike_those_they_were_fitted_to(kind, dtype):
    shape = Profiles.fit(normal(1, 100, 9, dtype=dtype), 4)
    X = rows_of(kind).astype(dtype)
    for few in (1, 2, 4):
        assert_certified(shape, X, X, few)


@pytest.mark.parametrize("d", [1, 2, 3, 64, 65])
def test_profiles_bound_rows_of_every_width(d):
    X = normal(1, 8, d, dtype=np.float32)
    assert_certified(Profiles.fit(X, min(d, 6)), X, -np.abs(X))


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-30, 1e30, 1e200, 1e307])
def test_rows_of_any_length_have_the_profile_of_their_unit_selves(scale):
    X = normal(1, 30, 8)
    shape = Profiles.fit(X, 5)
    found = shape.transform(X * scale).table
    np.testing.assert_allclose(
        found, shape.transform(X).table, atol=1e-2 if scale < 1e-300 else 1e-6
    )


@pytest.mark.parametrize("scale", [1e-44, 1e38])
def test_the_ends_of_float32_have_profiles(scale):
    X = (np.sign(normal(1, 30, 8)) * scale).astype(np.float32)
    shape = Profiles.fit(X, 5)
    assert shape.rank == 5
    np.testing.assert_allclose(
        shape.transform(X).table, shape.transform(np.sign(X)).table, atol=1e-4
    )


@given(st.data())
def test_profiles_bound_whatever_rows(data):
    width = data.draw(st.integers(1, 7))
    dtype = data.draw(st.sampled_from(DTYPES))
    numbers = st.floats(-(2.0**100), 2.0**100, width=32) | st.sampled_from([0.0, 1.0])
    fitted, X, Y = (
        data.draw(hnp.arrays(dtype, (data.draw(st.integers(1, 4)), width), elements=numbers))
        for _ in range(3)
    )
    shape = Profiles.fit(fitted, data.draw(st.integers(1, width)))
    assert_certified(shape, X, Y)
    assert_certified(shape, X, Y, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cos", "decos"])
@pytest.mark.parametrize("kind", KINDS)
def test_norms_bound_the_metrics_that_do_not_sort(name, kind, dtype):
    X = rows_of(kind).astype(dtype)
    X = X[np.abs(X).max(axis=1) > 0]
    shape = fit(METRICS[name], X, 3)
    features = shape.transform(X)
    ups, downs = shape.as_queries(features)
    np.testing.assert_array_equal(ups, downs)
    checked = 0
    for few in (1, 3):
        rest = features.residual(few)
        side = features._replace(table=ups).residual(few)
        for i, u in enumerate(X):
            for j, v in enumerate(X):
                if np.isinf(features.error[[i, j]]).any():
                    continue
                terms = exact(u, v)
                bound = terms.mean_square if name == "decos" else terms.cauchy_schwarz
                estimate = inner(ups[i, :few], features.table[j, :few])
                room = inner(side[i : i + 1], rest[j : j + 1])
                assert abs(bound / terms.cauchy_schwarz - estimate) <= room
                checked += 1
    assert checked > 10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [3, 300, 5000])
@pytest.mark.parametrize("sign", [1, 0])
def test_cosines_are_as_exact_as_the_features_say(dtype, d, sign):
    X = normal(1, 6, d)
    X = (np.abs(X) if sign else X * 10.0 ** normal(2, 6, d)).astype(dtype)
    features = Profiles.fit(X, 2).transform(X)
    unit = (X / np.linalg.norm(X.astype(np.float64), axis=1)[:, None]).astype(np.float32)
    dots = unit @ X.astype(np.float32).T
    for order in (slice(None), slice(None, None, -1)):  # the worst order: one number at a time
        sums = np.zeros((6, 6), np.float32)
        for column in range(d)[order]:
            sums += unit[:, None, column] * X.astype(np.float32)[None, :, column]
        for i, u in enumerate(X):
            for j, v in enumerate(X):
                terms = exact(u, v)
                cosine = terms.dot / root(terms.square_u * terms.square_v)
                for dot in (dots[i, j], sums[i, j]):
                    found = Fraction(float(dot)) * Fraction(float(features.over[j]))
                    assert abs(found - cosine) <= Fraction(float(features.error[j]))


@pytest.mark.parametrize("name", ["recos", "cos", "decos", "tanimoto"])
def test_what_float32_cannot_hold_is_not_known(name):
    X = normal(1, 40, 5)
    X[3], X[5], X[7] = 1e30 * X[3], 1e-30 * X[5], 0
    X[11] *= 1e-200  # its squares vanish
    X[13] *= 1e200
    features = fit(METRICS[name], X, 3).transform(X)
    assert np.flatnonzero(np.isinf(features.error)).tolist() == [3, 5, 11, 13]
    assert np.flatnonzero(features.error == 0).tolist() == [7]
    assert (features.over[[3, 5, 7, 11, 13]] == 0).all()
    assert np.isfinite(features.table).all()


def test_error_covers_every_order_of_very_long_sums():
    wide = np.ones((1, 2**18), np.float32)
    error = Norms.fit(wide, METRICS["cos"].weights).transform(wide).error[0]
    share = 2.0**18 * 2.0**-24
    assert error >= share / (1 - share)  # the worst case of a float32 sum (Higham 2002)


# --- Features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_residuals_shrink_with_every_coordinate(name):
    X = normal(1, 60, 33, dtype=np.float32)
    shape = fit(METRICS[name], X, 7)
    features = shape.transform(X)
    residuals = np.stack([features.residual(few) for few in range(shape.rank + 1)])
    assert (np.diff(residuals, axis=0) <= 0).all()
    assert residuals.dtype == np.float32
    lengths = np.linalg.norm(features.table.astype(np.float64), axis=1)
    assert (residuals[0] >= lengths).all()
    assert (residuals[-1] >= features.table[:, -1]).all()


@pytest.mark.parametrize("d", [2, 9, 64])
def test_a_full_basis_leaves_only_rounding(d):
    X = normal(1, 200, d)
    shape = Profiles.fit(X, d)
    assert shape.rank == d
    assert shape.transform(X).table[:, -1].max() < 6e-3


def test_more_coordinates_hold_more():
    X = normal(1, 300, 40)
    held = [np.mean(Profiles.fit(X, rank).transform(X).table[:, -1]) for rank in (1, 4, 16)]
    assert held[0] > held[1] > held[2]
    assert held[1] < 0.2


@pytest.mark.parametrize("d", [5, 8])
def test_basis_vectors_are_even_or_odd_and_of_length_one(d):
    shape = Profiles.fit(normal(1, 50, d), d)
    assert (shape.even.any(axis=1) != shape.odd.any(axis=1)).all()
    np.testing.assert_array_equal(shape.signs == -1, shape.even.any(axis=1))
    half = d // 2
    whole = np.concatenate([shape.even[:, :half] - shape.odd, shape.even[:, half:]], axis=1)
    whole = np.concatenate([whole, (shape.even[:, :half] + shape.odd)[:, ::-1]], axis=1)
    assert whole.shape == (d, d)
    np.testing.assert_allclose(whole @ whole.T, np.eye(d), atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_fitted_objects_can_be_pickled(name):
    X = normal(1, 80, 12, dtype=np.float32)
    shape = fit(METRICS[name], X, 4)
    again = pickle.loads(pickle.dumps(shape))
    assert type(again) is type(shape)
    assert (again.rank, again.most) == (shape.rank, shape.most)
    for left, right in zip(again.transform(X), shape.transform(X), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("width", "itemsize", "rank"), [(1, 4, 1), (64, 4, 8), (384, 4, 19), (768, 4, 32), (384, 2, 8)]
)
def test_what_is_known_takes_little_of_the_room_of_a_row(width, itemsize, rank):
    assert largest_rank(width, itemsize) == rank


def test_rows_have_the_coordinates_that_are_worth_it():
    X = normal(1, 4000, 384, dtype=np.float32)
    alike = np.sort(X[:1]) + 1e-4 * X  # nearly one profile
    recos = METRICS["recos"]
    assert fit(recos, alike).rank == 2  # its even and its odd part
    assert fit(recos, X).rank == largest_rank(384, 4)
    heavy = np.random.default_rng(2).standard_t(2, (4000, 1024))
    assert fit(recos, heavy).rank > 16
    even = 1 + normal(3, 4000, 768) / 4
    chosen = fit(recos, even).rank
    assert 1 <= chosen < largest_rank(768, 4)
    more = [np.mean(Profiles.fit(even, r).transform(even).table[:, -1] ** 2) for r in (chosen, 32)]
    assert more[0] - more[1] < 32 * (768 + 16) * 2.0**-24


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e300])
def test_any_rows_can_be_fitted(name, value):
    X = np.full((20, 6), value)
    shape = fit(METRICS[name], X, 3)
    found = shape.transform(normal(1, 5, 6))
    assert np.isfinite(found.table).all()


@pytest.mark.parametrize("threads", ["1", "3"])
def test_rows_described_on_threads_are_as_described_at_once(monkeypatch, threads):
    monkeypatch.setenv("RECOS_NUM_THREADS", threads)
    X = normal(1, 9000, 64, dtype=np.float16)
    shape = Profiles.fit(X, 3)
    found = describe(shape, X, np.dtype(np.float32), name="X")
    for left, right in zip(found, shape.transform(X.astype(np.float32)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", METRICS)
def test_the_first_row_that_is_not_finite_is_named(bad, name):
    X = normal(1, 9000, 64, dtype=np.float32)
    shape = fit(METRICS[name], X, 3)
    X[[7001, 8500], 3] = bad
    X[6000] = 3e38  # unknown, but finite
    with pytest.raises(ValueError, match=r"^X: expected finite numbers, .* in row 7011;"):
        describe(shape, X, X.dtype, name="X", first=10)


@pytest.mark.parametrize("kind", ["float16", "int32", "fortran", "strided"])
def test_rows_of_any_kind_are_described(kind):
    X = np.random.default_rng(1).integers(-90, 90, (50, 64))
    shape = Profiles.fit(X.astype(float), 5)
    rows = {
        "float16": X.astype(np.float16),
        "int32": X.astype(np.int32),
        "fortran": np.asfortranarray(X, np.float32),
        "strided": np.repeat(X.astype(np.float32), 2, axis=1)[:, ::2],
    }[kind]
    expected = shape.transform(X.astype(np.float32))
    np.testing.assert_allclose(
        shape.transform(rows).table[:, :-1], expected.table[:, :-1], atol=1e-6
    )
    with pytest.raises(ValueError, match=r"^X: expected a matrix of shape \(n, 64\), got shape"):
        shape.transform(rows[:, :10])

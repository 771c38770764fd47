"""Definitions 1 and 2, and the shares of concordant, discordant and tied pairs."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recos import concordance, discordant, similar

stats = pytest.importorskip("scipy.stats")


def signs_of_pairs(u, v):
    """Return the sign of (u_i - u_j)(v_i - v_j) for all i < j, without leaving the integers."""
    return [
        ((u[i] > u[j]) - (u[i] < u[j])) * ((v[i] > v[j]) - (v[i] < v[j]))
        for i, j in combinations(range(len(u)), 2)
    ]


def check_against_all_pairs(u, v):
    signs = signs_of_pairs(u, v)
    assert bool(similar(u, v)) == (-1 not in signs)
    assert bool(discordant(u, v)) == (1 not in signs)
    if signs:
        shares = [float(share) for share in concordance(u, v)]
        expected = [signs.count(sign) / len(signs) for sign in (1, -1, 0)]
        assert shares == pytest.approx(expected, abs=1e-15)
        assert sum(shares) == pytest.approx(1, abs=1e-15)


def vectors(numbers, **sizes):
    return st.lists(st.tuples(numbers, numbers), **sizes).map(lambda x: list(zip(*x, strict=True)))


@given(vectors(st.integers(-3, 3), min_size=1, max_size=20))
def test_every_pair_counts_as_defined_with_many_ties(pair):
    check_against_all_pairs(*pair)


@given(vectors(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_every_pair_counts_as_defined_for_floats(pair):
    check_against_all_pairs(*pair)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_pair_counts_as_defined_exhaustively(d):
    for u in product(range(3), repeat=d):
        for v in product(range(3), repeat=d):
            check_against_all_pairs(u, v)


@pytest.mark.parametrize("d", range(2, 40))
def test_every_length_merges_its_runs(d, rng):
    check_against_all_pairs(rng.permutation(d).tolist(), rng.integers(0, d, d).tolist())


@pytest.mark.parametrize("d", [2, 100, 1000, 1025])
def test_shares_give_kendalls_tau(d, rng):
    u, v = rng.standard_normal((2, d))
    shares = concordance(u, v)
    tau = stats.kendalltau(u, v).statistic
    assert shares.concordant - shares.discordant == pytest.approx(tau, abs=1e-12)
    assert shares.tied == 0


@pytest.mark.parametrize("d", [10, 100, 1000])
def test_shares_give_kendalls_tau_b_with_ties(d, rng):
    u, v = rng.integers(0, 8, (2, d))
    shares = concordance(u, v)
    untied_u, untied_v = (1 - concordance(x, x).tied for x in (u, v))
    tau_b = (shares.concordant - shares.discordant) / np.sqrt(untied_u * untied_v)
    assert tau_b == pytest.approx(stats.kendalltau(u, v).statistic, abs=1e-12)


@given(vectors(st.integers(-4, 4), min_size=2, max_size=12))
def test_negating_one_vector_exchanges_concordant_and_discordant(pair):
    u, v = pair
    negated = [-x for x in v]
    shares, swapped = concordance(u, v), concordance(u, negated)
    assert (shares.concordant, shares.discordant) == (swapped.discordant, swapped.concordant)
    assert similar(u, v) == discordant(u, negated)


@given(vectors(st.integers(-4, 4), min_size=2, max_size=12))
def test_order_is_symmetric_and_blind_to_increasing_functions(pair):
    u, v = pair
    bent = [x**3 + x for x in u]
    for of in (similar, discordant, concordance):
        assert of(u, v) == of(v, u) == of(bent, v)


def test_constant_vectors_are_similar_and_discordant_to_everything(rng):
    for d in (1, 2, 9):
        v = rng.standard_normal(d)
        for constant in (np.zeros(d), np.full(d, -2.5)):
            assert similar(constant, v)
            assert discordant(constant, v)
    assert concordance(np.zeros(9), np.arange(9)) == (0, 0, 1)


def test_signed_zeros_are_tied():
    assert similar([0.0, -0.0], [1, 2])
    assert discordant([-0.0, 0.0], [1, 2])
    assert concordance([0.0, -0.0], [1, 2]).tied == 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32"])
def test_every_dtype_is_compared_as_it_is(dtype):
    u, v = np.array([0, 1, 1], dtype), np.array([1, 0, 1], dtype)
    shares = concordance(u, v)
    assert [round(float(share), 3) for share in shares] == [0, 0.333, 0.667]
    assert not similar(u, v)
    assert discordant(u, v)
    kinds = {"float16": "float16", "int64": "float64"}
    assert {x.dtype for x in shares} == {np.dtype(kinds.get(dtype, "float32"))}
    assert similar(u, v).dtype == bool


def test_neighbouring_large_integers_differ():
    assert not similar([2**53 - 1, 2**53], [1, 0])
    assert not similar(np.int32([2**24, 2**24 + 1]), [1, 0])
    assert not similar(np.float32([1, 1 + 2.0**-23]), np.float32([1, 0]))


@pytest.mark.parametrize(
    ("shape_u", "shape_v", "axis"),
    [
        ((6,), (6,), -1),
        ((4, 6), (6,), -1),
        ((4, 1, 6), (5, 6), -1),
        ((6, 4), (6, 4), 0),
        ((2, 6, 3), (2, 6, 3), 1),
        ((0, 6), (0, 6), -1),
    ],
)
def test_batches_broadcast_as_vecdot_does(shape_u, shape_v, axis, rng):
    u, v = rng.integers(0, 3, shape_u), rng.integers(0, 3, shape_v)
    shape = np.vecdot(u, v, axis=axis).shape
    results = (
        similar(u, v, axis=axis),
        discordant(u, v, axis=axis),
        *concordance(u, v, axis=axis),
    )
    assert {np.shape(x) for x in results} == {shape}
    last = [np.broadcast_to(np.moveaxis(x, axis, -1), (*shape, 6)) for x in (u, v)]
    for place in np.ndindex(shape):
        one = [x[place] for x in last]
        expected = (similar(*one), discordant(*one), *concordance(*one))
        assert tuple(x[place] for x in results) == expected


def test_results_of_two_vectors_are_numpy_scalars():
    assert type(similar([1, 2], [1, 2])) is np.bool_
    assert {type(share) for share in concordance([1, 2], [1, 2])} == {np.float64}


def test_counts_do_not_overflow_on_long_vectors():
    d = 2**17
    ascending = np.arange(d, dtype=np.float64)
    assert concordance(ascending, ascending) == (1, 0, 0)
    assert concordance(ascending, ascending[::-1]) == (0, 1, 0)


def test_a_pair_of_positions_is_needed():
    with pytest.raises(ValueError, match="u and v: expected at least 2 components to compare, got"):
        concordance([1.0], [2.0])
    assert similar([1.0], [-2.0])
    assert discordant([1.0], [2.0])

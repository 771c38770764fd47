"""The statements of docs/theory.md: Theorem 1, its corollaries, closed forms, counterexamples.

Vectors of small integers make every dot product and every rearrangement bound exact in float64.
Products of two norms are rounded roots; two of them that differ at all, for such integers, differ
by more than 1e-9 of their size, so ``near`` decides equality.
"""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracle import SIMILARITIES, exact

from recos import METRICS, bounds, concordance, cos, decos, discordant, recos, similar, tanimoto

FUNCTIONS = {name: metric.function for name, metric in METRICS.items()}


def near(a, b):
    return abs(a - b) <= 1e-10 * max(abs(a), abs(b))


# Vectors --------------------------------------------------------------------------------------

entries = st.integers(-6, 6)


@st.composite
def any_pairs(draw):
    d = draw(st.integers(1, 6))
    vector = st.lists(entries, min_size=d, max_size=d)
    return draw(vector), draw(vector)


@st.composite
def similar_pairs(draw):
    """Two ascending vectors, their positions permuted together."""
    u, v = (sorted(x) for x in draw(any_pairs()))
    order = draw(st.permutations(range(len(u))))
    return [u[i] for i in order], [v[i] for i in order]


@st.composite
def dependent_pairs(draw):
    base, (a, b) = draw(any_pairs())[0], draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
    return [a * x for x in base], [b * x for x in base]


@st.composite
def rearranged_pairs(draw):
    u, v = draw(dependent_pairs())
    return u, draw(st.permutations(v))


@st.composite
def equal_length_pairs(draw):
    u, _ = draw(any_pairs())
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=len(u), max_size=len(u)))
    return u, [s * x for s, x in zip(signs, draw(st.permutations(u)), strict=True)]


@st.composite
def nudged(draw, pairs):
    """Move one entry of a pair by 1: out of a condition that the pair meets, as a rule."""
    u, v = draw(pairs)
    i = draw(st.integers(0, len(v) - 1))
    return u, [x + (draw(st.sampled_from([-1, 1])) if i == j else 0) for j, x in enumerate(v)]


meeting = st.one_of(similar_pairs(), dependent_pairs(), rearranged_pairs(), equal_length_pairs())
some_pairs = st.one_of(any_pairs(), meeting, nudged(meeting))
nonzero = st.integers(-5, 5).filter(bool)
positive_similar_pairs = similar_pairs().map(lambda pair: tuple([x + 7 for x in y] for y in pair))
orthogonal_pairs = st.one_of(
    # (a, b, 0, ...) and (-b, a, ...), rearranged together; and a constant with a sum of 0
    st.tuples(entries, nonzero, entries, entries).map(
        lambda x: ([x[0], x[1], 0], [-x[1] * x[2], x[0] * x[2], x[3]])
    ),
    st.tuples(nonzero, entries, entries).map(lambda x: ([x[0]] * 3, [x[1], x[2], -x[1] - x[2]])),
)


# The conditions, in integers ------------------------------------------------------------------


def dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def signed(u, v):
    """Return s v, where s is the sign of the dot product and 1 at 0."""
    return [-x for x in v] if dot(u, v) < 0 else list(v)


def ordered_alike(u, v):
    return all((a - b) * (c - d) >= 0 for a, c in zip(u, v, strict=True)
               for b, d in zip(u, v, strict=True))  # fmt: skip


def ordered_oppositely(u, v):
    return ordered_alike(u, [-x for x in v])


def dependent(u, v):
    return all(a * d == b * c for a, c in zip(u, v, strict=True) for b, d in zip(u, v, strict=True))


def nonnegative_multiple_rearranged(u, w):
    """Whether u is 0 or w = k P u for a permutation P and k >= 0."""
    u, w = sorted(u), sorted(w)
    return not any(u) or (dependent(u, w) and dot(u, w) >= 0)


EQUALITIES = {  # of two members of the chain, by their places in it: the condition of Theorem 1
    "1 dot = rearrangement": (0, 1, lambda u, v: ordered_alike(u, signed(u, v))),
    "2 dot = Cauchy-Schwarz": (0, 2, dependent),
    "3 dot = mean square": (0, 3, lambda u, v: v == u or v == [-x for x in u]),
    "4 rearrangement = Cauchy-Schwarz": (
        1, 2, lambda u, v: nonnegative_multiple_rearranged(u, signed(u, v))),
    "5 rearrangement = mean square": (1, 3, lambda u, v: sorted(u) == sorted(signed(u, v))),
    "6 Cauchy-Schwarz = mean square": (2, 3, lambda u, v: dot(u, u) == dot(v, v)),
}  # fmt: skip


def chain(u, v):
    first, *others = (float(x) for x in bounds(u, v))
    return [abs(first), *others]


# Theorem 1 ------------------------------------------------------------------------------------


@given(some_pairs)
def test_bounds_are_what_the_theorem_calls_them(pair):
    u, v = pair
    computed, terms = bounds(u, v), exact(u, v)
    assert computed.dot == terms.dot
    assert computed.rearrangement == abs(terms.rearrangement)
    assert near(float(computed.cauchy_schwarz), sqrt(dot(u, u)) * sqrt(dot(v, v)))
    assert computed.mean_square == pytest.approx(float(terms.mean_square), rel=1e-15)


@given(any_pairs())
def test_rearrangement_bound_is_extreme_over_all_pairings_of_the_entries(pair):
    u, v = pair
    pick = min if dot(u, v) < 0 else max
    assert bounds(u, v).rearrangement == abs(pick(dot(u, p) for p in permutations(v)))


@given(some_pairs)
def test_chain_ascends(pair):
    links = chain(*pair)
    assert links == sorted(links)


@pytest.mark.parametrize("name", EQUALITIES)
@given(pair=some_pairs)
@example(pair=([0, 0], [0, 0]))
@example(pair=([0, 0], [1, 2]))
@example(pair=([1, 2], [0, 0]))
@example(pair=([1, -1], [1, 1]))
@example(pair=([1, 0], [0, 1]))
@example(pair=([1, 0, 0], [0, 1, 1]))
@example(pair=([3, -1, -1], [-1, 3, -1]))
@example(pair=([2], [-3]))
def test_two_bounds_are_equal_exactly_under_the_condition(name, pair):
    one, other, condition = EQUALITIES[name]
    links = chain(*pair)
    assert near(links[one], links[other]) == condition(*pair)


@pytest.mark.parametrize("name", EQUALITIES)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_equalities_hold_for_all_vectors_of_small_integers(name, d):
    one, other, condition = EQUALITIES[name]
    vectors = [list(x) for x in product(range(-2, 3), repeat=d)]
    first, *others = bounds(np.array(vectors)[:, None], np.array(vectors)[None, :])
    links = [abs(first), *others]
    equal = np.abs(links[one] - links[other]) <= 1e-10 * links[other]
    expected = np.array([[condition(u, v) for v in vectors] for u in vectors])
    assert expected.any()
    assert d == 1 or not expected.all()
    assert (equal == expected).all()


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("1 dot = rearrangement", positive_similar_pairs),
        ("2 dot = Cauchy-Schwarz", dependent_pairs()),
        ("6 Cauchy-Schwarz = mean square", equal_length_pairs()),
    ],
)
@given(data=st.data())
def test_built_to_meet_a_condition_then_moved_out_of_it(name, pairs, data):
    one, other, condition = EQUALITIES[name]
    u, v = data.draw(pairs)
    links = chain(u, v)
    assert near(links[one], links[other])
    u, v = data.draw(nudged(st.just((u, v))))
    links = chain(u, v)
    assert (links[one] < links[other] and not near(links[one], links[other])) != condition(u, v)


@given(some_pairs, st.permutations(range(6)), nonzero)
def test_rearranged_multiples_meet_condition_4_where_the_sign_of_k_is_that_of_the_dot_product(
    pair, order, k
):
    u, _ = pair
    rearranged = [k * u[i] for i in order if i < len(u)]
    _, rearrangement, cauchy_schwarz, mean_square = chain(u, rearranged)
    assert near(cauchy_schwarz, mean_square) == (abs(k) == 1 or not any(u))
    if dot(u, rearranged) * k > 0:
        assert near(rearrangement, cauchy_schwarz)


@given(some_pairs)
def test_written_out_conditions_for_nonzero_dot_products(pair):
    u, v = pair
    assume(dot(u, v) != 0)
    links = chain(u, v)
    order = similar if dot(u, v) > 0 else discordant
    assert (links[0] == links[1]) == bool(order(u, v))
    multiples = {Fraction(b, a) for a, b in zip(u, v, strict=True) if a}
    is_multiple = len(multiples) == 1 and all(b == 0 for a, b in zip(u, v, strict=True) if not a)
    assert near(links[0], links[2]) == is_multiple
    if is_multiple:
        assert (multiples.pop() > 0) == (dot(u, v) > 0)
    assert near(links[0], links[3]) == (v == (u if dot(u, v) > 0 else [-x for x in u]))


# The sign branch ------------------------------------------------------------------------------


@given(some_pairs)
def test_ascending_bound_alone_could_be_exceeded_only_where_the_dot_product_is_negative(pair):
    terms = exact(*pair)
    computed = bounds(*pair)
    if terms.dot >= 0:
        assert computed.dot <= computed.rearrangement == terms.up
    else:
        assert computed.dot >= terms.down == -computed.rearrangement


@pytest.mark.parametrize(
    ("u", "v", "without_branch"),
    [
        ([2, 1], [-1, 0], Fraction(-2)),
        ([3, 1], [-300, 101], Fraction(-799, 3)),
        ([3, 1], [-3, 1], None),
    ],
)
def test_without_the_branch_the_quotient_has_no_bound(u, v, without_branch):
    terms = exact(u, v)
    assert terms.up == 0 if without_branch is None else terms.dot / abs(terms.up) == without_branch
    assert recos(u, v) == -1


@given(some_pairs)
def test_one_sign_serves_both_branches(pair):
    u, v = pair
    one, other = bounds(u, v), bounds(u, signed(u, v))
    assert other.dot == abs(one.dot)
    assert other[1:] == one[1:]


# Corollaries ----------------------------------------------------------------------------------


@given(some_pairs)
@example(([0, 0], [0, 0]))
@example(([1, -1], [1, 1]))
def test_corollary_1_range_and_saturation(pair):
    u, v = pair
    positive, negative = dot(u, v) > 0, dot(u, v) < 0
    minus_u = [-x for x in u]
    parallel = dependent(u, v) and dot(u, v) != 0
    top = {
        "recos": positive and ordered_alike(u, v),
        "cos": positive and parallel,
        "decos": v == u and any(u),
        "tanimoto": v == u and any(u),
    }
    bottom = {
        "recos": negative and ordered_oppositely(u, v),
        "cos": negative and parallel,
        "decos": v == minus_u and any(u),
        "tanimoto": v == minus_u and any(u),
    }
    for name, function in FUNCTIONS.items():
        score = float(function(u, v))
        low, high = METRICS[name].range
        assert low <= score <= high
        assert near(score, high) == top[name], name
        assert near(score, low) == bottom[name], name


@given(positive_similar_pairs)
def test_recos_is_exactly_1_or_exactly_minus_1_where_it_saturates(pair):
    u, v = pair
    assert recos(u, v) == 1.0
    assert recos(u, [-x for x in v]) == -1.0


def test_order_alone_does_not_decide():
    assert similar([1, 2], [-2, -1])
    assert recos([1, 2], [-2, -1]) == -0.8
    assert discordant(EXPERTS[1], EXPERTS[3])
    assert recos(EXPERTS[1], EXPERTS[3]) > 0


@given(some_pairs)
@example(([1, 0, 0], [0, 1, 1]))
def test_corollary_2_hierarchy(pair):
    u, v = pair
    r, c, d = (float(FUNCTIONS[name](u, v)) for name in ("recos", "cos", "decos"))
    assert abs(d) <= abs(c) * (1 + 1e-15)
    assert abs(c) <= abs(r) * (1 + 1e-15)
    assert np.sign(r) == np.sign(c) == np.sign(d) == np.sign(dot(u, v))
    orthogonal, w = dot(u, v) == 0, signed(u, v)
    assert near(r, c) == (orthogonal or nonnegative_multiple_rearranged(u, w))
    assert near(r, d) == (orthogonal or sorted(u) == sorted(w))
    assert near(c, d) == (orthogonal or dot(u, u) == dot(v, v))


@given(equal_length_pairs())
def test_corollary_3_equal_lengths(pair):
    u, v = pair
    assert near(float(cos(u, v)), float(decos(u, v)))
    rearranged = sorted(u) == sorted(signed(u, v))
    if dot(u, v) and not rearranged:
        assert abs(recos(u, v)) > abs(cos(u, v)) + 1e-10


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=9), st.randoms(use_true_random=False))
def test_corollary_3_unit_lengths(values, random):
    u = np.array(values)
    assume(np.linalg.norm(u) > 1e-3)
    v = np.array(random.sample(values, len(values))) + 1.0
    assume(np.linalg.norm(v) > 1e-3)
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    assert cos(u, v) == pytest.approx(decos(u, v), abs=1e-15)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("name", METRICS)
def test_zero_vectors_score_0(name, d):
    ones, zeros = np.arange(1.0, d + 1), np.zeros(d)
    for u, v in ((ones, zeros), (zeros, ones), (zeros, zeros), (zeros, -zeros)):
        assert FUNCTIONS[name](u, v) == 0


@given(some_pairs)
def test_all_scores_are_0_exactly_where_the_dot_product_is(pair):
    for function in FUNCTIONS.values():
        assert (function(*pair) == 0) == (dot(*pair) == 0)


@given(nonzero, nonzero)
def test_in_one_dimension_recos_and_cos_are_a_sign(a, b):
    sign = 1 if a * b > 0 else -1
    assert recos([a], [b]) == cos([a], [b]) == sign
    assert near(float(decos([a], [b])), 2 * a * b / (a * a + b * b))


@given(nonzero, st.lists(entries, min_size=1, max_size=8))
def test_constant_vector_scores_the_sign_of_the_sum(c, v):
    assert recos([c] * len(v), v) == np.sign(c * sum(v))


# Where the dot product is 0 -------------------------------------------------------------------


def test_zero_over_zero_jumps():
    assert recos([1, -1], [1, 1]) == 0
    assert recos([1, -1], [1.001, 1]) == 1
    assert recos([1, -1], [1, 1.001]) == -1


@given(orthogonal_pairs)
def test_recos_is_continuous_at_0_exactly_where_the_vectors_are_neither_similar_nor_discordant(
    pair,
):
    u, v = pair
    assert dot(u, v) == 0
    assert any(u)
    step = 2.0**-20
    beside = [recos(u, np.array(v) + sign * step * np.array(u)) for sign in (1, -1)]
    # v + step u is similar to u where v is; v - step u is discordant to u where v is.
    if ordered_alike(u, v):
        assert beside[0] == pytest.approx(1, abs=1e-9)
    if ordered_oppositely(u, v):
        assert beside[1] == pytest.approx(-1, abs=1e-9)
    if not (ordered_alike(u, v) or ordered_oppositely(u, v)):
        assert max(abs(x) for x in beside) < 1e-3


# Symmetries and identities --------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
@given(pair=some_pairs, order=st.permutations(range(6)))
def test_symmetric_and_blind_to_a_common_permutation(name, pair, order):
    (u, v), score = pair, FUNCTIONS[name](*pair)
    order = [i for i in order if i < len(u)]
    assert FUNCTIONS[name](v, u) == score
    assert FUNCTIONS[name]([u[i] for i in order], [v[i] for i in order]) == score


@pytest.mark.parametrize("name", METRICS)
@given(pair=some_pairs, a=nonzero, b=nonzero)
def test_scales_and_signs_of_the_vectors(name, pair, a, b):
    u, v = pair
    scaled = [a * x for x in u], [b * x for x in v]
    score, after = (float(FUNCTIONS[name](*vectors)) for vectors in (pair, scaled))
    if METRICS[name].scale_invariant:
        assert near(after, score if a * b > 0 else -score)
    elif abs(a) != abs(b) and u == v and any(u):
        assert abs(after) < abs(score)


@given(some_pairs)
def test_decos_and_tanimoto_are_one_to_one(pair):
    d, t = float(decos(*pair)), float(tanimoto(*pair))
    assert t == pytest.approx(d / (2 - d), abs=1e-15)
    assert d == pytest.approx(2 * t / (1 + t), abs=1e-15)


@given(some_pairs, some_pairs)
def test_decos_and_tanimoto_rank_alike(one, other):
    by_decos = SIMILARITIES["decos"](*one) - SIMILARITIES["decos"](*other)
    computed = float(tanimoto(*one)) - float(tanimoto(*other))
    assert (by_decos > 0) == (computed > 1e-12)
    assert (by_decos < 0) == (computed < -1e-12)


@given(some_pairs)
def test_recos_is_cosine_over_the_profile_cosine(pair):
    u, v = pair
    assume(dot(u, v))
    profile = sorted(u), sorted(v, reverse=dot(u, v) < 0)
    assert recos(u, v) == pytest.approx(float(cos(u, v)) / abs(float(cos(*profile))), rel=1e-12)


@given(some_pairs)
def test_even_and_odd_parts_give_both_rearrangements(pair):
    ascending = [np.sort(x) for x in pair]
    parts = [(x + x[::-1], x - x[::-1]) for x in ascending]
    (even_u, odd_u), (even_v, odd_v) = parts
    even, odd = Fraction(int(even_u @ even_v), 4), Fraction(int(odd_u @ odd_v), 4)
    terms = exact(*pair)
    assert (even + odd, even - odd) == (terms.up, terms.down)
    assert odd >= 0
    assert bounds(*pair).rearrangement == abs(even + (-odd if terms.dot < 0 else odd))


@given(some_pairs)
def test_optimal_transport_view(pair):
    u, v = pair
    assume(dot(u, v))
    w = signed(u, v)
    total = dot(u, u) + dot(w, w)
    apart = sum((a - b) ** 2 for a, b in zip(u, w, strict=True))
    transport = min(
        sum((a - b) ** 2 for a, b in zip(u, p, strict=True)) for p in permutations(w)
    )  # d W2 squared: the cheapest of all pairings
    assert abs(decos(u, v)) == pytest.approx((total - apart) / total, rel=1e-14)
    assert abs(recos(u, v)) == pytest.approx((total - apart) / (total - transport), rel=1e-14)


# The worked example ---------------------------------------------------------------------------

EXPERTS = {
    1: [1, 5.5, 2, 4],
    2: [2, 6, 3, 5],
    3: [9, 4.5, 8, 6],
    4: [2, 5.5, 1, 4],
    5: [1.225, 6.7375, 2.45, 4.9],
    6: [1, 8.5, 2, 4],
}


@pytest.mark.parametrize(
    ("expert", "printed"),
    [
        (2, {"recos": 1.0000, "cos": 0.9905, "decos": 0.9741, "tanimoto": 0.9494}),
        (3, {"recos": 0.7526, "cos": 0.7262, "decos": 0.5842, "tanimoto": 0.4126}),
        (4, {"recos": 0.9805, "cos": 0.9805, "decos": 0.9805, "tanimoto": 0.9617}),
        (5, {"recos": 1.0000, "cos": 1.0000, "decos": 0.9798, "tanimoto": 0.9603}),
        (6, {"recos": 1.0000, "cos": 0.9800, "decos": 0.9377, "tanimoto": 0.8827}),
    ],
)
def test_experts_score_as_printed(expert, printed):
    u, v = EXPERTS[1], EXPERTS[expert]
    assert {name: round(float(f(u, v)), 4) for name, f in FUNCTIONS.items()} == printed


def test_experts_disagree_where_the_notes_say():
    assert concordance(EXPERTS[1], EXPERTS[3]).discordant == 1
    assert concordance(EXPERTS[1], EXPERTS[4]).discordant == pytest.approx(1 / 6)
    for i, j in combinations(range(4), 2):
        first, fourth = ([EXPERTS[e][k] for k in (i, j)] for e in (1, 4))
        assert similar(first, fourth) == ((i, j) != (0, 2))


# Vectors of two values ------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_zeros_and_ones_score_the_old_set_coefficients(d):
    sets = np.array(list(product([0, 1], repeat=d)))
    u, v = sets[:, None], sets[None, :]
    p, q, h = u.sum(-1), v.sum(-1), (u & v).sum(-1)
    met = h > 0
    expected = {
        "recos": h / np.minimum(p, q).clip(1),  # overlap
        "cos": h / np.sqrt((p * q).clip(1)),  # Ochiai
        "decos": 2 * h / (p + q).clip(1),  # Dice
        "tanimoto": h / (p + q - h).clip(1),  # Jaccard
    }
    for name, function in FUNCTIONS.items():
        np.testing.assert_allclose(function(u, v), np.where(met, expected[name], 0), rtol=1e-15)
        np.testing.assert_array_equal(function(u == 1, v == 1) > 0, met)
    assert (bounds(u, v).rearrangement == np.minimum(p, q)).all()
    # -v turns the dot product negative, where the sets meet, and the order descending
    assert (bounds(u, -v).rearrangement == np.where(met, np.minimum(p, q), 0)).all()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_zeros_and_ones_meet_in_descending_order_only_where_they_must(d):
    for u, v in product(product([0, 1], repeat=d), repeat=2):
        assert exact(u, v).down == max(0, sum(u) + sum(v) - d)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_signs_score_by_hamming_distance(d):
    signs = np.array(list(product([-1, 1], repeat=d)))
    u, v = signs[:, None], signs[None, :]
    p, q, hamming = (u > 0).sum(-1), (v > 0).sum(-1), (u != v).sum(-1)
    inner = d - 2 * hamming
    ascending, descending = d - 2 * abs(p - q), d - 2 * abs(p + q - d)
    used = np.where(inner >= 0, ascending, descending)
    assert (used[inner != 0] > 0).all()
    expected = {
        "recos": inner / np.where(inner == 0, 1, used),
        "cos": inner / d,
        "decos": inner / d,
        "tanimoto": inner / (d + 2 * hamming),
    }
    for name, function in FUNCTIONS.items():
        np.testing.assert_allclose(function(u, v), expected[name], rtol=2e-15, err_msg=name)
        np.testing.assert_array_equal(
            function(u.astype(np.int8), v.astype(np.int8)), function(u, v).astype(np.float32)
        )
    assert (bounds(u, v).rearrangement == abs(used)).all()


def test_ascending_bound_of_signs_can_be_negative():
    assert exact([1, 1], [-1, -1]).up == -2
    assert recos([1, 1], [-1, -1]) == -1


# What recos is not ----------------------------------------------------------------------------


def test_not_rotation_invariant():
    assert recos([2, 1], [1, 3]) == 5 / 7
    assert recos([-1, 2], [-3, 1]) == 1  # both turned by 90 degrees
    assert recos([2, -1], [1, -3]) == 1  # the second sign flipped in both
    assert cos([2, 1], [1, 3]) == cos([-1, 2], [-3, 1]) == cos([2, -1], [1, -3])


def test_not_shift_invariant():
    u, v = np.array([1, 2]), np.array([2, 1])
    scores = [recos(u + c, v + c) for c in (-1.5, 0, 10)]
    assert scores == [-1, 4 / 5, 264 / 265]


def test_not_a_rank_correlation():
    u, v = np.array([2, 1]), np.array([1, 3])
    assert recos(u**3, v**3) != recos(u, v)  # an increasing function of all entries


def test_not_a_metric_distance():
    u, v, w = [2, 1], [1, 2], [1, 3]
    assert 1 - recos(v, w) == 0
    assert v != w
    assert 1 - recos(u, w) > (1 - recos(u, v)) + (1 - recos(v, w))
    assert [SIMILARITIES["recos"](u, x) for x in (v, w)] == [Fraction(4, 5), Fraction(5, 7)]


@pytest.mark.parametrize(
    ("vectors", "determinant"),
    [
        ([[2, 1], [1, 2], [1, 3]], Fraction(-9, 1225)),
        ([[2, 1], [1, 1], [1, 2]], Fraction(-1, 25)),
    ],
)
def test_not_positive_semidefinite(vectors, determinant):
    rows = np.array(vectors)
    gram = recos(rows[:, None], rows[None, :])
    assert np.linalg.det(gram) == pytest.approx(float(determinant), rel=1e-10)
    assert np.linalg.eigvalsh(gram).min() < -0.008


@pytest.mark.parametrize("name", ["cos", "decos", "tanimoto"])
@given(st.integers(0, 2**32 - 1))
def test_the_other_three_are_positive_semidefinite(name, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-4, 5, size=(8, rng.integers(1, 5)))
    gram = FUNCTIONS[name](rows[:, None], rows[None, :])
    assert np.linalg.eigvalsh(gram).min() > -1e-12


@given(some_pairs, st.integers(1, 10**6))
def test_near_constant_vectors_saturate_as_the_formula_says(pair, c):
    w, v = pair
    u = [c + x for x in w]
    assume(dot(u, v) > 0)
    up = dot(sorted(w), sorted(v))
    short = Fraction(up - dot(w, v), c * sum(v) + up)
    assert recos(u, v) == pytest.approx(float(1 - short), abs=1e-15)


# The paper's printed code ---------------------------------------------------------------------


def paper_recos(e1, e2):
    """The function printed in the appendix of arXiv:2602.05266, statement by statement."""
    e1, e2 = e1.astype(np.float32), e2.astype(np.float32)
    e1_asc, e1_desc = np.sort(e1), np.flip(np.sort(e1))
    e2_asc = np.sort(e2)
    dot = np.sum(e1 * e2)
    dot_aa = np.sum(e1_asc * e2_asc)
    dot_ad = np.sum(e1_desc * e2_asc)
    dot_aa = np.where(dot_aa == 0, 1e-6, dot_aa)
    dot_ad = np.where(dot_ad == 0, 1e-6, dot_ad)
    sim = np.where(dot >= 0, dot / abs(dot_aa), dot / abs(dot_ad))
    return np.clip(sim, -1.0, 1.0)


@given(some_pairs)
def test_printed_code_agrees_on_exact_sums(pair):
    u, v = (np.array(x) for x in pair)
    assert paper_recos(u, v) == pytest.approx(float(recos(u, v)), abs=1e-7)


@pytest.mark.parametrize("d", [2, 16, 384])
def test_printed_code_agrees_on_embedding_like_vectors(d, rng):
    for u, v in rng.standard_normal((50, 2, d)).astype(np.float32):
        assert paper_recos(u, v) == pytest.approx(float(recos(u, v)), abs=5e-6)


@pytest.mark.parametrize(
    ("u", "v", "printed", "right"),
    [
        pytest.param([1, -1, 1e-9], [1, 1, 1], 0.001, 1, id="guard"),
        pytest.param([16777217, -16777216], [1, 1], 0, 1, id="float32"),
        pytest.param([1e20, 2e20], [2e20, 1e20], np.nan, 0.8, id="overflow"),
        pytest.param([1e-25, 2e-25], [2e-25, 1e-25], 0, 0.8, id="underflow"),
        pytest.param([1e-22, 2e-22], [2e-22, 1e-22], 0.7778, 0.8, id="lost digits"),
    ],
)
def test_printed_code_disagrees_where_documented(u, v, printed, right):
    u, v = np.array(u), np.array(v)
    with np.errstate(all="ignore"):
        assert paper_recos(u, v) == pytest.approx(printed, abs=5e-5, nan_ok=True)
    assert recos(u, v) == pytest.approx(right, abs=1e-15)


def test_printed_code_collapses_matrices():
    u, v = np.array([[2, 1], [2, 1]]), np.array([[1, 3], [-1, 0]])
    assert paper_recos(u, v) == 0.5
    assert recos(u, v).tolist() == [5 / 7, -1]


def test_printed_code_reverses_rows_too():
    u, v = np.array([[1, 2], [2, 3]]), np.array([[-2, -1], [-3, -1]])
    mended = np.sum(u * v, axis=-1) / abs(np.sum(np.flip(np.sort(u)) * np.sort(v), axis=-1))
    assert mended.clip(-1, 1).tolist() == [-0.5, -1]
    assert recos(u, v).tolist() == [-4 / 5, -9 / 11]


def test_printed_code_lets_nan_through():
    u, v = np.array([np.nan, 1]), np.array([1, 1])
    assert np.isnan(paper_recos(u, v))
    with pytest.raises(ValueError, match="u: expected finite numbers, got NaN or infinity"):
        recos(u, v)

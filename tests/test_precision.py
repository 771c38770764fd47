"""Errors against exact rational arithmetic on the numbers as stored.

Every metric is held to the same limits on rows of every character and length, wherever it is
computed: vector by vector (NumPy alone), in blocks of aligned rows (compiled), and for all pairs
(matrix products).
"""

import numpy as np
import pytest
from oracle import SIMILARITIES, error, exact

import recos
from recos import METRICS

LIMITS = {"float64": 1e-13, "float32": 2e-6, "float16": 1e-3}
LENGTHS = (1, 2, 3, 7, 64, 1023, 4096)


def spiky(rng, shape):
    """One large entry a row, the others about a thousandth of it or exactly 0."""
    rows = 1e-3 * rng.standard_normal(shape) * rng.integers(0, 2, shape)
    rows[..., 0] = rng.choice([-1.0, 1.0], shape[:-1])
    return rng.permuted(rows, axis=-1)


CHARACTERS = {
    "random": lambda rng, shape: rng.standard_normal(shape),
    "student": lambda rng, shape: rng.standard_t(3, shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape).clip(-6e4, 6e4),
    "shifted": lambda rng, shape: 10 + rng.standard_normal(shape),
    "nearly constant": lambda rng, shape: 3 + 2.0**-9 * rng.standard_normal(shape),
    "spiky": spiky,
    "opposed": lambda rng, shape: (
        rng.choice([-1.0, 1.0], (shape[0], 1)) * (1 + 0.1 * rng.random(shape))
    ),
}


def worst(scores, metric, u, v):
    return max(
        error(score, SIMILARITIES[metric](a, b)) for score, a, b in zip(scores, u, v, strict=True)
    )


def by_vector(function, u, v):
    return [function(a, b) for a, b in zip(u, v, strict=True)]


def in_large_blocks(function, u, v):
    """Score the rows among others, more than one block of them."""
    filler = np.ones((2**18 // u.shape[1] + 1, u.shape[1]), u.dtype)
    return function(np.concatenate([filler, u]), np.concatenate([filler, v]))[len(filler) :]


@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("character", CHARACTERS)
def test_error_of_aligned_rows(character, dtype, d, rng):
    count = 2 if d > 100 else 6
    u, v = CHARACTERS[character](rng, (2 * count, d)).astype(dtype).reshape(2, count, d)
    for name, metric in METRICS.items():
        for compute in (by_vector, in_large_blocks):
            scores = compute(metric.function, u, v)
            assert worst(scores, name, u, v) <= LIMITS[dtype], (name, compute.__name__)


@pytest.mark.parametrize("d", LENGTHS)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("character", CHARACTERS)
def test_error_of_all_pairs(character, dtype, d, rng):
    count = 100 if d <= 64 else 20
    rows = CHARACTERS[character](rng, (2 * count, d)).astype(dtype)
    x, y = rows[:count], rows[count:]
    i, j = rng.integers(0, count, (2, 2 if d > 100 else 8))
    for name in METRICS:
        scores = recos.pairwise(x, y, metric=name)
        assert worst(scores[i, j], name, x[i], y[j]) <= LIMITS[dtype], name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [4, 65, 1000])
def test_error_of_all_pairs_where_bounds_nearly_cancel(dtype, d, rng):
    """Constant rows with rows whose sum is nearly 0: every rounding error is magnified."""
    x = np.repeat(rng.standard_normal((12, 1)), d, axis=1).astype(dtype)
    y = rng.standard_normal((12, d))
    y[:, -1] -= y.sum(axis=1)
    y = y.astype(dtype)
    for scores in (recos.pairwise(x, y), recos.recos(x[:, None], y[None, :])):
        for i, j in np.ndindex(12, 12):
            assert error(scores[i, j], SIMILARITIES["recos"](x[i], y[j])) <= LIMITS[dtype]


@pytest.mark.parametrize("d", [4, 16, 64, 200])
def test_dot_products_of_exactly_0_score_0_though_their_sums_round(d, rng):
    for _ in range(100):
        half = rng.standard_normal(d // 2) * 10.0 ** rng.integers(-3, 4, d // 2)
        constant = np.full(d, rng.standard_normal())
        balanced = rng.permutation(np.concatenate([half, -half]))
        assert exact(constant, balanced).dot == 0
        # The rearrangement bound is 0 too: the quotient of two rounding errors is not 0.
        assert abs(recos.recos(constant, balanced)) <= LIMITS["float64"]
        assert abs(recos.pairwise(constant[None], balanced[None])[0, 0]) <= LIMITS["float64"]


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_and_vectors_agree_to_the_error_of_the_dtype(metric, rng):
    x, y = rng.standard_normal((2, 130, 96)).astype(np.float32)
    table = recos.pairwise(x, y, metric=metric)
    exactly = METRICS[metric].function(x[:, None].astype(float), y[None, :].astype(float))
    np.testing.assert_allclose(table, exactly, rtol=0, atol=5e-7)
    np.testing.assert_allclose(
        recos.paired(x, y, metric=metric), np.diagonal(exactly), rtol=0, atol=1e-7
    )


def test_bounds_to_the_last_digits(rng):
    for d in (3, 64, 1023):
        u, v = rng.standard_normal((2, d))
        terms = exact(u, v)
        size = float(terms.cauchy_schwarz)
        chain = recos.bounds(u, v)
        for name in chain._fields:
            assert error(getattr(chain, name), getattr(terms, name)) <= 1e-14 * size, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_do_not_depend_on_the_rows_around_them(dtype, rng):
    """A row that must be scaled, or is doubtful, leaves its neighbours as they are."""
    x, y = rng.standard_normal((2, 700, 200)).astype(dtype)
    wild = x.copy()
    wild[350] = np.finfo(dtype).max / 2
    kept = np.arange(700) != 350
    for metric in METRICS:
        calm = recos.paired(x, y, metric=metric)
        np.testing.assert_allclose(
            recos.paired(wild, y, metric=metric)[kept], calm[kept], rtol=0, atol=LIMITS[dtype]
        )

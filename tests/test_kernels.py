"""Compiled kernels: the same as their Python selves, and as plain NumPy."""

import numpy as np
import pytest

from recos._kernels import networks, ranks, sorting, sums, tiles

SHAPES = [(1, 1), (1, 2), (2, 1), (3, 3), (5, 8), (4, 33), (17, 16)]
NEAR = {np.float32: 1e-5, np.float64: 1e-13}

all_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
all_shapes = pytest.mark.parametrize(("n", "d"), SHAPES)
both_selves = pytest.mark.parametrize(
    "run", [lambda kernel: kernel, lambda kernel: kernel.py_func], ids=["compiled", "python"]
)


def normal(seed, *shape, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@both_selves
@all_dtypes
@all_shapes
@pytest.mark.parametrize("single", ["neither", "u", "v"])
def test_products(run, dtype, n, d, single):
    u, v = normal(1, n, d, dtype=dtype), normal(2, n, d, dtype=dtype)
    u, v = u[:1] if single == "u" else u, v[:1] if single == "v" else v
    out = np.full((3, n), np.nan)
    run(sums.products)(u, v, out)
    a, b = np.broadcast_arrays(u.astype(np.float64), v.astype(np.float64))
    expected = [(a * b).sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1)]
    np.testing.assert_allclose(out, np.broadcast_to(expected, (3, n)), rtol=1e-13, atol=1e-13)


@both_selves
@all_dtypes
@all_shapes
@pytest.mark.parametrize("single", ["neither", "u", "v"])
def test_sorted_products(run, dtype, n, d, single):
    u, v = np.sort(normal(1, n, d, dtype=dtype)), np.sort(normal(2, n, d, dtype=dtype))
    u, v = u[:1] if single == "u" else u, v[:1] if single == "v" else v
    out = np.full((n, 2), np.nan)
    run(sums.sorted_products)(u, v, out)
    a, b = np.broadcast_arrays(u.astype(np.float64), v.astype(np.float64))
    expected = [(a * b).sum(axis=1), (a * b[:, ::-1]).sum(axis=1)]
    np.testing.assert_allclose(out.T, expected, rtol=1e-12, atol=1e-13)
    assert (out[:, 0] >= out[:, 1] - 1e-13).all()


@both_selves
@all_dtypes
@all_shapes
def test_squares(run, dtype, n, d):
    x, out = normal(1, n, d, dtype=dtype), np.full(n, np.nan)
    run(sums.squares)(x, out)
    np.testing.assert_allclose(out, (x.astype(np.float64) ** 2).sum(axis=1), rtol=1e-13)


def test_sums_are_made_in_float64():
    x = np.full((1, 3), 1e30, np.float32)
    out = np.empty(1)
    sums.squares(x, out)
    assert out[0] == pytest.approx(3e60, rel=1e-6)
    many = np.array([[2.0**24, *[1.0] * 64]], np.float32)
    out = np.empty((3, 1))
    sums.products(many, np.ones_like(many), out)
    assert out[0, 0] == 2**24 + 64


@both_selves
@all_dtypes
@all_shapes
def test_fold(run, dtype, n, d):
    x, out = np.sort(normal(1, n, d, dtype=dtype)), np.full((n, d), np.nan, dtype)
    run(sums.fold)(x, out)
    half, back = d // 2, x[:, ::-1]
    np.testing.assert_array_equal(out[:, :half], (x + back)[:, :half])
    np.testing.assert_array_equal(out[:, half : d - half], x[:, half : d - half])
    np.testing.assert_array_equal(out[:, d - half :], (back - x)[:, :half])


@both_selves
@all_dtypes
@all_shapes
def test_folded_products_are_both_rearrangement_bounds(run, dtype, n, d):
    u, v = np.sort(normal(1, n, d, dtype=dtype)), np.sort(normal(2, n, d, dtype=dtype))
    folded_u, folded_v = np.empty_like(u), np.empty_like(v)
    run(sums.fold)(u, folded_u)
    run(sums.fold)(v, folded_v)
    middle = d - d // 2
    weights = np.where((np.arange(middle) == middle - 1) & (d % 2 == 1), 2, 1)
    even = (folded_u[:, :middle] * weights) @ folded_v[:, :middle].T
    odd = folded_u[:, middle:] @ folded_v[:, middle:].T
    near = NEAR[dtype]
    np.testing.assert_allclose((even + odd) / 2, u @ v.T, rtol=near, atol=near)
    np.testing.assert_allclose((even - odd) / 2, u @ v[:, ::-1].T, rtol=near, atol=near)


@both_selves
@all_dtypes
@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 5), (8, 17)])
@pytest.mark.parametrize("first", [0, 4])
def test_divide_by_rearrangement(run, dtype, n, m, first):
    """Quarters add up exactly, so there is one right answer, doubt included."""
    rng = np.random.default_rng(1)
    dots = rng.integers(-40, 41, (n, m)) / 4
    up = np.abs(dots) + rng.integers(0, 9, (n, m)) / 4
    down = -np.abs(dots) - rng.integers(0, 9, (n, m)) / 4
    norm_u, norm_v = 1.0 + np.arange(n), 2.0 + np.arange(m)
    least, near = 0.25, 0.125
    room = np.full((n, first + m + 2), 7.0, dtype)
    room[:, first : first + m] = dots
    count = run(tiles.divide_by_rearrangement)(
        room,
        first,
        *(x.astype(dtype) for x in (up + down, up - down, norm_u, norm_v)),
        dtype(least),
        dtype(near),
    )
    size = np.outer(norm_u, norm_v)
    bound, other = np.where(dots >= 0, [up, -down], [-down, up])
    doubtful = (bound < least * size) | ((np.abs(dots) < near * size) & (other < least * size))
    quotient = np.divide(dots, bound, out=np.zeros((n, m)), where=bound > 0)
    expected = np.where(doubtful, np.nan, np.clip(quotient, -1, 1))
    np.testing.assert_allclose(room[:, first : first + m], expected, rtol=1e-6)
    assert count == doubtful.sum()
    assert (room[:, :first] == 7).all()
    assert (room[:, first + m :] == 7).all()


@both_selves
@all_dtypes
def test_rearrangement_of_zero_rows_and_beyond_the_range(run, dtype):
    dots = np.array([[0.0, 3.0, -3.0]], dtype)
    even, odd = np.zeros((1, 3), dtype), np.array([[0.0, 5.0, 5.0]], dtype)
    norm_u, norm_v = np.ones(1, dtype), np.array([0.0, 1.0, 1.0], dtype)
    count = run(tiles.divide_by_rearrangement)(
        dots, 0, even, odd, norm_u, norm_v, dtype(0.01), dtype(0.001)
    )
    np.testing.assert_array_equal(dots, [[0, 1, -1]])
    assert count == 0


@both_selves
@all_dtypes
@pytest.mark.parametrize(
    ("cauchy_schwarz", "mean_square", "shared", "low"),
    [(1, 0, 0, -1), (0, 1, 0, -1), (0, 2, -1, -1 / 3), (0.5, 0.25, 0.125, -0.75)],
)
@pytest.mark.parametrize("first", [0, 3])
def test_divide_by_norms(run, dtype, cauchy_schwarz, mean_square, shared, low, first):
    n, m = 6, 9
    x, y = normal(1, n, 4, dtype=dtype), normal(2, m, 4, dtype=dtype)
    x[2], y[5], y[0] = 0, 0, -x[0]
    scale_u, scale_v = 2.0 ** np.arange(-3, 3), 2.0 ** np.arange(-4, 5)
    norm_u, norm_v = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    room = np.full((n, first + m + 1), 7.0, dtype)
    room[:, first : first + m] = x @ y.T
    arrays = (norm_u, norm_v, scale_u, scale_v, 1 / scale_u, 1 / scale_v)
    weights = (cauchy_schwarz, mean_square, shared, low)
    run(tiles.divide_by_norms)(
        room, first, *(a.astype(dtype) for a in arrays), *(dtype(w) for w in weights)
    )
    x, y = x * scale_u[:, None], y * scale_v[:, None]  # the rows before they were scaled
    dots = x @ y.T
    own, other = (x * x).sum(axis=1)[:, None], (y * y).sum(axis=1)
    bound = cauchy_schwarz * np.sqrt(own * other) + mean_square * (own + other) / 2 + shared * dots
    expected = np.divide(dots, bound, out=np.zeros((n, m)), where=bound > 0)
    expected = np.clip(expected, low, 1)
    near = NEAR[dtype]
    np.testing.assert_allclose(room[:, first : first + m], expected, rtol=near, atol=near)
    assert (room[:, :first] == 7).all()
    assert (room[:, first + m :] == 7).all()


@both_selves
@all_dtypes
@pytest.mark.parametrize("first", [0, 3])
def test_divide_by_lengths(run, dtype, first):
    n, m = 5, 9
    x, y = normal(1, n, 4, dtype=dtype), normal(2, m, 4, dtype=dtype)
    y[:3] = x[0], -2 * x[0], 0 * x[0]
    over_x, over_y = 1 / np.linalg.norm(x, axis=1), 1 / np.linalg.norm(y + (y == 0), axis=1)
    room = np.full((n, first + m + 1), 7.0, dtype)
    room[:, first : first + m] = 1.01 * (x @ y.T)  # beyond what rounding does: it is clipped
    run(tiles.divide_by_lengths)(room, first, over_x.astype(dtype), over_y.astype(dtype))
    expected = np.clip(1.01 * (x @ y.T) * over_x[:, None] * over_y, -1, 1)
    near = NEAR[dtype]
    np.testing.assert_allclose(room[:, first : first + m], expected, rtol=near, atol=near)
    assert room[0, first : first + 3].tolist() == [1, -1, 0]
    assert (room[:, :first] == 7).all()
    assert (room[:, first + m :] == 7).all()


WIDTHS = [1, 2, 15, 16, 17, 31, 33, 48, 100, 127, 128, 129, 255, 300, 513, 768, 1000, 2049, 8193]


@all_dtypes
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 35])
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_sorted(dtype, n, width):
    x = normal(n + width, n, width, dtype=dtype)
    out = np.full_like(x, np.nan)
    before = x.copy()
    sorting.sort_rows(x, out)
    np.testing.assert_array_equal(out, np.sort(x, axis=1))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("width", [17, 50, 64, 200])
def test_rows_with_ties_and_extremes_are_sorted(width):
    values = np.array([0, -0.0, 1, 1, -3e38, 3e38, 1e-45, np.inf, -np.inf], np.float32)
    x = np.random.default_rng(width).choice(values, (40, width))
    out = np.empty_like(x)
    sorting.sort_rows(x, out)
    np.testing.assert_array_equal(out, np.sort(x, axis=1))


def exchanged(numbers, exchanges):
    numbers = numbers.copy()
    for i, j in exchanges:
        low, high = np.minimum(numbers[i], numbers[j]), np.maximum(numbers[i], numbers[j])
        numbers[i], numbers[j] = low, high
    return numbers


def zeros_and_ones(size):
    """Return all columns of zeros and ones: a network that sorts them sorts everything."""
    return np.arange(2**size) >> np.arange(size)[:, None] & 1


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("width", [17, 18, 31, 50, 384, 385])
def test_products_of_rows_sorted_side_by_side(n, width):
    u, v = normal(1, n, width, dtype=np.float32), normal(2, n, width, dtype=np.float32)
    out = np.full((n, 2), np.nan)
    sorting.sorted_products(u, v, out)
    a, b = np.sort(u.astype(np.float64)), np.sort(v.astype(np.float64))
    np.testing.assert_allclose(out[:, 0], (a * b).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(out[:, 1], (a * b[:, ::-1]).sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("n", [16, 17, 40])
@pytest.mark.parametrize("width", [17, 18, 31, 50, 384, 385])
@pytest.mark.parametrize(("even", "odd"), [(1, 0), (0, 1), (3, 2), (9, 8)])
def test_coordinates_of_sorted_rows(n, width, even, odd):
    rows = normal(1, n, width, dtype=np.float32)
    halves = normal(2, even, width - width // 2), normal(3, odd, width // 2)
    ascending = np.sort(rows.astype(np.float64))
    low, high = ascending[:, : width // 2], ascending[:, ::-1][:, : width // 2]
    middle = ascending[:, width // 2 : width - width // 2]
    parts = np.hstack([high + low, middle]) @ halves[0].T, (high - low) @ halves[1].T
    found = sorting.coordinates(rows, *halves)
    np.testing.assert_allclose(found, np.hstack(parts), atol=width * 1e-6)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_the_odd_even_network_sorts(size):
    numbers = zeros_and_ones(size)
    sorted_numbers = exchanged(numbers, networks.odd_even(size))
    np.testing.assert_array_equal(sorted_numbers, np.sort(numbers, axis=0))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_the_bitonic_network_sorts_what_rises_then_falls(size):
    numbers = zeros_and_ones(size)
    turns = (numbers != np.roll(numbers, 1, axis=0)).sum(axis=0)  # around the circle
    numbers = numbers[:, turns <= 2]
    np.testing.assert_array_equal(
        exchanged(numbers, networks.bitonic(size)), np.sort(numbers, axis=0)
    )


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_mirrored_network_merges_two_runs(size):
    low, high = zeros_and_ones(size), zeros_and_ones(size)
    low, high = (np.unique(np.sort(x, axis=0), axis=1) for x in (low, high))
    for i in range(low.shape[1]):
        for j in range(high.shape[1]):
            both = np.concatenate([low[:, i], high[::-1, j]])[:, None]
            merged = exchanged(both, networks.mirrored(size))
            merged = np.concatenate([merged[:size], merged[: size - 1 : -1]])
            np.testing.assert_array_equal(merged, np.sort(both, axis=0))


@both_selves
@pytest.mark.parametrize("n", [3, 40])
def test_rank_correlations_repeat_observations_by_their_weights(run, n):
    from scipy import stats

    rng = np.random.default_rng(4)
    rows = rng.integers(8, size=(3, n)).astype(np.float64)
    rows[:, :3] = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    weights = rng.integers(4, size=n).astype(np.float64)
    weights[:3] = 1
    groups = np.stack([np.unique(row, return_inverse=True)[1] for row in rows])
    out = np.full(2, np.nan)
    run(ranks.rank_correlations)(groups, groups.max(axis=1) + 1, weights, out)
    repeated = np.repeat(rows, weights.astype(int), axis=1)
    expected = [stats.spearmanr(row, repeated[2]).statistic for row in repeated[:2]]
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    run(ranks.rank_correlations)(groups, groups.max(axis=1) + 1, np.eye(n)[0], out)
    assert np.isnan(out).all()

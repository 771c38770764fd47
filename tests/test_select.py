"""The kernel that keeps the best of a tile: limits enclose every quotient, heaps keep the best."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recos._kernels import select

versions = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
share = st.floats(0, 1)


def limits_of(compiled):
    return select.limits if compiled else select.limits.py_func


@versions
@given(st.data())
def test_limits_enclose_the_true_quotient(compiled, data):
    """Of vectors, |u·v| is at most the bound that goes with its sign, and that is at most 1."""
    cosine = data.draw(st.integers(-(10**6), 10**6)) / 10**6  # not lost beside an error
    chosen = abs(cosine) + (1 - abs(cosine)) * data.draw(share)
    other = data.draw(st.floats(-1, 1))
    bounds = (chosen, other) if cosine > 0 else (other, chosen)
    error, residual = data.draw(share) ** 3, data.draw(share) ** 3
    off = (
        error * data.draw(st.floats(-1, 1)),
        *(residual * data.draw(st.floats(-1, 1)) for _ in range(2)),
    )
    lower_error = abs(off[0]) + error * data.draw(share)
    score = cosine / chosen if cosine else 0.0
    most = data.draw(st.sampled_from([1.0, np.inf]))
    lower, upper = limits_of(compiled)(
        cosine + off[0], lower_error, bounds[0] + off[1], bounds[1] + off[2], residual, most
    )
    assert -1 <= lower <= upper <= 1
    assert lower <= score + 1e-12
    assert upper >= score - 1e-12


@versions
def test_limits_of_what_is_known_are_the_score(compiled):
    limits = limits_of(compiled)
    for cosine, up, down, score in ((0.5, 0.8, 0.6, 0.625), (-0.3, 0.8, 0.6, -0.5)):
        np.testing.assert_allclose(limits(cosine, 0.0, up, down, 0.0, 1.0), score)
    assert limits(0.0, 0.0, 0.8, -0.3, 0.0, 1.0) == (0, 0)  # a row of zeros
    assert limits(0.0, 0.0, -0.8, 0.3, 0.0, 1.0) == (0, 0)
    assert limits(0.0, 0.1, 0.8, 0.4, 0.0, 1.0) == (-0.25, 0.125)


@versions
@pytest.mark.parametrize("cosine", [0.0, 0.9, -1.0, np.nan])
def test_what_is_not_known_may_be_anything(compiled, cosine):
    assert limits_of(compiled)(cosine, np.inf, 0.5, 0.5, 0.1, 1.0) == (-1, 1)


@versions
def test_limits_use_that_no_bound_is_above_one(compiled):
    limits = limits_of(compiled)
    assert limits(0.5, 0.0, 0.9, 0.0, 9.0, 1.0)[0] == 0.5
    assert limits(-0.5, 0.0, 0.0, 0.9, 9.0, 1.0)[1] == -0.5
    assert limits(0.5, 0.0, 0.9, 0.0, 9.1, np.inf)[0] == 0.05


@versions
@pytest.mark.parametrize("k", [1, 2, 3, 8, 100])
def test_heaps_keep_the_largest(compiled, k):
    replace = select._replace_least if compiled else select._replace_least.py_func
    values = np.random.default_rng(k).integers(0, 50, 300).astype(float)
    heap = np.full(k, -np.inf)
    for count, value in enumerate(values, 1):
        if value > heap[0]:
            replace(heap, value)
        assert heap[0] == min(heap)
        kept = sorted(heap[np.isfinite(heap)])
        assert kept == sorted(heapq.nlargest(min(k, count), values[:count]))


@versions
def test_what_is_below_the_floor_is_dropped_in_order(compiled):
    drop = select._drop_below if compiled else select._drop_below.py_func
    rows, uppers = np.arange(6), np.array([0.1, 0.5, 0.4, 0.6, 0.5, 9.0])
    assert drop(rows, uppers, 5, 0.5) == 3
    assert rows[:3].tolist() == [1, 3, 4]
    assert uppers[:3].tolist() == [0.5, 0.6, 0.5]


@versions
@pytest.mark.parametrize("floor", [0.8, 0.1, 0.0, -0.3])
def test_what_is_left_of_upper_limits_is_their_weighted_sum(compiled, floor):
    rule_out = select._rule_out if compiled else select._rule_out.py_func
    rng = np.random.default_rng(1)
    dots, over, error = rng.standard_normal((3, 90)).astype(np.float32)
    columns, weights = (rng.standard_normal(x).astype(np.float32) for x in ((4, 90), 4))
    left = np.empty(90, np.float32)
    doubt = np.float32(0.25)
    rule_out(dots, over, error, doubt, columns, weights, np.float32(floor), left)
    wide = dots.astype(float) * over + error + doubt - floor * (weights.astype(float) @ columns)
    np.testing.assert_allclose(left, wide, atol=4e-6)


class Tile:
    """Cosines with a bound of 1 and no residual: limits are the cosine and its error."""

    def __init__(self, dots, k, room, *, error=1e-6, allowed=(), own=None, first=0, again=None):
        dots = np.asarray(dots, np.float32)
        n, size = dots.shape
        ones, error = np.ones(size, np.float32), np.full(size, error, np.float32)
        table = np.tile(np.float32([1, 0]), (size, 1))
        sides = np.tile(np.float32([1, 0, 0]), (n, 1))
        own = np.full(n, -1) if own is None else np.asarray(own)
        columns = np.ascontiguousarray(table.T)
        self.heaps, self.counts = np.full((n, k), -np.inf), np.zeros(n, np.int64)
        self.rows, self.uppers = np.full((n, room), -1), np.empty((n, room))
        self.again = np.zeros(n, np.int64)
        unit, tile = (
            (np.zeros((n, 1), np.float32), np.zeros((0, 1), np.float32)) if again is None else again
        )
        doubt, near = np.zeros(n, np.float32), np.full(size, 1e-6, np.float32)
        self.fixed = ones, error, doubt, unit, tile, near, columns, table, sides, sides, 1, 1.0
        self.tail = np.asarray(allowed, bool), own
        self.dots, self.first = dots, first

    def sweep(self, query=0, *, compiled=True):
        run = select.sweep if compiled else select.sweep.py_func
        found = self.heaps, self.rows, self.uppers, self.counts, self.again
        return run(self.dots, query, *self.fixed, *self.tail, self.first, *found)

    def found(self, i):
        return self.rows[i, : self.counts[i]].tolist()


@versions
def test_a_sweep_keeps_the_best_and_no_other_where_scores_are_apart(compiled):
    dots = np.random.default_rng(1).permuted(np.tile(np.linspace(-0.9, 0.9, 200), (3, 1)), axis=1)
    tile = Tile(dots, 4, 400, first=1000)
    assert tile.sweep(compiled=compiled) == 3
    for i in range(3):
        best = np.argsort(-tile.dots[i])[:4]
        kept = tile.rows[i, : tile.counts[i]][tile.uppers[i, : tile.counts[i]] >= tile.heaps[i, 0]]
        assert sorted(kept) == sorted(1000 + best)
        np.testing.assert_allclose(sorted(tile.heaps[i]), np.sort(tile.dots[i])[-4:], atol=2e-6)
    before = tile.counts.copy()
    tile.dots = -np.abs(tile.dots)  # nothing here reaches the floor
    assert tile.sweep(compiled=compiled) == 3
    np.testing.assert_array_equal(tile.counts, before)


@versions
def test_ties_are_all_kept(compiled):
    tile = Tile(np.full((2, 90), 0.5), 3, 180)
    assert tile.sweep(compiled=compiled) == 2
    assert [tile.found(i) for i in range(2)] == [list(range(90))] * 2


@versions
def test_rows_that_must_not_be_found_are_not(compiled):
    allowed = np.arange(70) % 2 == 0
    tile = Tile(np.full((3, 70), 0.5), 2, 140, allowed=allowed, own=[-1, 104, 6], first=100)
    assert tile.sweep(compiled=compiled) == 3
    even = list(range(100, 170, 2))
    assert tile.found(0) == tile.found(2) == even
    assert tile.found(1) == [row for row in even if row != 104]


@versions
def test_a_full_room_is_said_and_the_sweep_goes_on_from_there(compiled):
    tile = Tile(np.full((3, 50), 0.5), 2, 60)
    assert tile.sweep(compiled=compiled) == 3
    assert tile.sweep(compiled=compiled) == 0  # no room for another 50
    assert tile.counts.tolist() == [50] * 3
    tile.counts[:2] = 2
    tile.rows[:, :2], tile.uppers[:, :2] = [900, 901], 1.0
    assert tile.sweep(compiled=compiled) == 2
    assert tile.found(1) == [900, 901, *range(50)]
    tile.counts[2] = 2
    assert tile.sweep(2, compiled=compiled) == 3
    assert tile.counts.tolist() == [52] * 3  # the first two were not swept again


@versions
def test_room_is_made_by_dropping_what_no_longer_reaches(compiled):
    tile = Tile(np.linspace(0, 0.5, 40)[None], 1, 45)
    assert tile.sweep(compiled=compiled) == 1
    assert tile.counts[0] > 5
    tile.dots = np.full((1, 40), 0.75, np.float32)
    assert tile.sweep(compiled=compiled) == 1
    assert tile.found(0) == [39, *range(40)]


@versions
def test_a_negative_floor_keeps_zeros_and_positives(compiled):
    tile = Tile(np.full((1, 60), -0.5), 2, 400)
    assert tile.sweep(compiled=compiled) == 1
    assert tile.heaps.max() < 0
    tile.dots = np.full((1, 60), -0.9, np.float32)
    tile.dots[0, [7, 9]] = 0.0, 0.2
    tile.counts[:] = 0
    tile.sweep(compiled=compiled)
    assert tile.found(0) == [7, 9]


@versions
def test_products_that_are_not_ruled_out_are_made_again(compiled):
    """Rough products that say 0.1 more or less leave the rows that exact ones leave."""
    rng = np.random.default_rng(1)
    unit, rows = (rng.standard_normal((n, 64)).astype(np.float32) / 8 for n in (3, 300))
    exact = unit @ rows.T
    rough = exact + rng.uniform(-0.1, 0.1, exact.shape)
    tile = Tile(rough, 5, 600, error=0.1 + 1e-5, again=(unit, rows))
    for _ in range(2):  # the second time there is a floor
        assert tile.sweep(compiled=compiled) == 3
    assert (tile.again > 300).all()
    assert (tile.again < 600).all()
    for i in range(3):
        kept = tile.rows[i, : tile.counts[i]][tile.uppers[i, : tile.counts[i]] >= tile.heaps[i, 0]]
        assert set(np.argsort(-exact[i])[:3]) <= set(kept)
        assert len(set(kept)) <= 6

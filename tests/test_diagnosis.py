"""The diagnosis: rows that are odd are named, and what is known of made-up embeddings is found."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import recos
from recos import diagnose, paired, pairwise, topk
from recos._advice import Signs, expect


def spread(rng, n=800, d=24):
    """Return rows around many centres: pairs are related, nothing is shared by all."""
    centres = rng.normal(size=(n // 4, d))
    return np.repeat(centres, 4, axis=0) + 0.7 * rng.normal(size=(4 * (n // 4), d))


def crowded(rng, n=800, d=24):
    """Return the same rows, of different lengths, all with the same vector added."""
    X = spread(rng, n, d)
    common = np.full(d, 1.0)
    common[3] = 12
    return X * rng.gamma(4, 0.5, size=(len(X), 1)) + common


# --- Odd rows -------------------------------------------------------------------------------------


def test_two_rows_of_a_tiny_constant_are_named(rng):
    X = spread(rng).astype(np.float32)
    X[[100, 700]] = 1e-12
    found = diagnose(X)
    named = {row.row: row for row in found.odd_rows}
    assert sorted(named) == [100, 700]
    assert found.odd == {"near-constant and tiny": 2}
    for row in named.values():
        assert row.recos_lists > 0.2
        assert row.cos_lists < 0.1
        assert row.norm == pytest.approx(1e-12 * 24**0.5)
    assert re.search(r"row (100|700) \(near-constant and tiny; in \d+% of lists", found.advice)


def test_each_kind_of_odd_row_is_named(rng):
    X = spread(rng)
    X[10] *= 1e-12  # an ordinary row, scaled down
    X[20] = 0
    X[30] = 5 + 1e-3 * X[30]
    X[40] = -2.0
    found = diagnose(X)
    kinds = {row.row: row.kind for row in found.odd_rows}
    assert kinds == {10: "tiny", 20: "zero", 30: "near-constant", 40: "near-constant"}
    lists = {row.row: (row.recos_lists, row.cos_lists) for row in found.odd_rows}
    assert lists[20] == (0, 0)
    assert max(lists[10]) < 0.05  # its length does not matter
    assert min(lists[30][0], lists[40][0]) > 0.2


def test_a_huge_row_is_named_and_changes_nothing_else(rng):
    X = spread(rng)
    usual = diagnose(X)
    X[7] *= 1000
    found = diagnose(X)
    assert [(row.row, row.kind) for row in found.odd_rows if row.kind != "hub"] == [(7, "huge")]
    for name, change in found.expected.items():
        assert change == pytest.approx(usual.expected[name], abs=0.3)
    assert "Drop or mend the odd rows first (1 huge): row 7" in found.advice


def test_hubs_are_named_and_not_to_be_dropped(rng):
    X = spread(rng) + 1.5
    X[5] = X.mean(axis=0) + 0.3 * X[5] - 0.3 * X[5].mean()
    found = diagnose(X)
    assert set(found.odd) == {"hub"}
    assert "Drop or mend" not in found.advice
    assert re.search(r"Hubs, which may be as they should be: row .*\b5 \(hub;", found.advice)


def test_hubs_of_ordinary_size_are_named(rng):
    X = spread(rng) + 1.5
    X[5] = X.mean(axis=0) + 0.01 * X[5]
    found = diagnose(X)
    hub = next(row for row in found.odd_rows if row.row == 5)
    assert hub.kind in ("hub", "near-constant")
    assert hub.cos_lists > 0.05


def test_shares_of_lists_are_those_of_all_lists_of_a_small_corpus(rng):
    X = spread(rng, 200)
    X[[7, 90]] = 1e-12
    found = diagnose(X)
    usual = np.delete(np.arange(200), [7, 90])
    for metric, name in (("recos", "recos_lists"), ("cos", "cos_lists")):
        lists = topk(X, X, 10, metric=metric, exclude_self=True).indices[usual]
        for row in found.odd_rows:
            expected = (lists == row.row).any(axis=1).mean()
            assert getattr(row, name) == pytest.approx(expected, abs=0.02), row  # ties aside


# --- What is measured -----------------------------------------------------------------------------


def test_shares_are_those_of_all_rows(rng):
    X = crowded(rng)
    found = diagnose(X)
    assert found.largest == 3
    assert found.variance_share == pytest.approx(X[:, 3].var() / X.var(axis=0).sum())
    assert found.energy_share == pytest.approx((X[:, 3] ** 2).sum() / (X**2).sum())
    variances = np.linalg.eigvalsh(np.cov(X.T))
    assert found.top_share == pytest.approx(variances[-1] / variances.sum())
    assert found.effective_width == pytest.approx(variances.sum() ** 2 / (variances**2).sum())
    cosine = pairwise(X, metric="cos")[np.triu_indices(len(X), 1)]
    assert found.random_cosine == pytest.approx(cosine.mean(), abs=1e-6)
    profile = cosine / pairwise(X)[np.triu_indices(len(X), 1)]
    for quantile, value in found.profile_cosine.items():
        assert value == pytest.approx(np.quantile(profile, quantile), abs=0.02)


def test_changed_lists_are_counted(rng):
    X = crowded(rng, 300)
    found = diagnose(X)
    lists = [
        np.sort(topk(X, X, 10, metric=metric, exclude_self=True).indices, axis=1)
        for metric in ("cos", "recos")
    ]
    changed = (lists[0] != lists[1]).any(axis=1).mean()
    assert found.changed_lists == pytest.approx(changed, abs=0.01)
    assert 0 < found.changed_entries < found.changed_lists


def test_a_threshold_of_recos_is_reached_by_as_many_pairs(rng):
    X = crowded(rng)
    found = diagnose(X)
    cosine, scores = (
        pairwise(X, metric=metric)[np.triu_indices(len(X), 1)] for metric in ("cos", "recos")
    )
    for threshold in (0.8, 0.9, 0.95):
        matched = found.recos_threshold(threshold)
        assert matched >= threshold
        assert (scores >= matched).mean() == pytest.approx((cosine >= threshold).mean(), abs=0.03)
    assert found.recos_threshold(1) == 1
    with pytest.raises(ValueError, match=r"cosine: expected a number from 0 to 1, got 1\.5"):
        found.recos_threshold(1.5)


def test_what_depends_on_one_coordinate_does_not_survive_a_rotation(rng):
    X = crowded(rng)
    assert diagnose(X).surviving_rotation < 0.5
    permuted = recos.Rank().transform(spread(rng))  # of one profile, so recos is the cosine
    assert diagnose(permuted).surviving_rotation is None


def test_candidates_are_few_among_ordinary_rows(rng):
    assert 11 <= diagnose(spread(rng)).candidates < 200


# --- Advice ---------------------------------------------------------------------------------------


def test_nothing_is_promised_where_rows_are_well_spread(rng):
    found = diagnose(spread(rng, 2000, 48))
    assert found.expected["recos"].verdict == "little"
    assert found.expected["center+cos"].verdict == "little"
    assert "well spread" in found.advice


def test_centring_is_advised_where_rows_are_crowded_and_does_help(rng):
    """The truth is the cosine of the rows before they were crowded."""
    X = spread(np.random.default_rng(1))
    shared = crowded(np.random.default_rng(1))  # the same rows
    i, j = rng.integers(0, len(X), (2, 4000))
    truth = paired(X[i], X[j], metric="cos")
    centred = recos.Center().fit_transform(shared)
    before, after = (
        stats.spearmanr(paired(Z[i], Z[j], metric="cos"), truth).statistic
        for Z in (shared, centred)
    )
    found = diagnose(shared)
    assert after > before + 0.05
    assert found.expected["center+cos"].verdict == "helps"
    assert found.expected["center+cos"].points > found.expected["recos"].points
    assert "crowded" in found.advice
    assert "Component 3 alone holds" in found.advice


def test_centring_is_advised_against_where_it_lays_lengths_bare(rng):
    """Sums of many and of few words: before, the cosine does not see how many there were."""
    X = spread(rng)
    length = rng.gamma(2, 3, size=(len(X), 1))
    sums = length * (X + 4 * np.abs(rng.normal(size=24)))
    i, j = rng.integers(0, len(X), (2, 4000))
    truth = paired(X[i], X[j], metric="cos")
    before, after = (
        stats.spearmanr(paired(Z[i], Z[j], metric="cos"), truth).statistic
        for Z in (sums, recos.Center().fit_transform(sums))
    )
    found = diagnose(sums)
    assert after < before - 0.05
    assert found.expected["center+cos"].verdict == "hurts"
    assert found.expected["removetop+cos"].points > found.expected["center+cos"].points + 5


def test_too_few_rows_to_whiten_are_said(rng):
    found = diagnose(rng.normal(size=(110, 40)))
    assert "too few rows" in found.advice
    assert found.expected["whiten+cos"].verdict == "not clear"


def test_nothing_is_expected_from_fewer_than_a_hundred_rows(rng):
    found = diagnose(spread(rng, 60, 4))
    assert found.expected == {}
    assert "too few rows here to expect anything" in found.advice
    assert diagnose(spread(rng, 100, 4)).expected


def expected(**signs):
    """Return what is expected of well-spread embeddings whose directions are unequal."""
    usual = {"row_share": 0.1, "top_odds": 0.3, "alignment": 0, "random_cosine": 0,
             "evenness": 0.25, "axis_evenness": 1, "kurtosis": 3, "moved": 0, "moved_centred": 0,
             "towards": 0, "enough": True}  # fmt: skip
    return expect(Signs(**usual | signs))


def test_it_is_not_clear_what_centring_does_where_the_top_direction_is_that_of_the_mean():
    crowding = {"row_share": 0.5, "top_odds": 1.5, "random_cosine": 0.3}
    assert expected(**crowding)["center+cos"].verdict == "helps"
    assert expected(**crowding, alignment=0.8)["center+cos"].verdict == "not clear"
    assert expected(**crowding, alignment=0.8)["removetop+cos"].verdict == "helps"


def test_it_is_not_clear_what_whitening_does_where_directions_are_equally_large():
    assert expected()["whiten+cos"].verdict == "hurts"
    assert expected(evenness=0.5)["whiten+cos"].verdict == "not clear"


def test_what_is_expected_stays_within_what_is_possible():
    most = expected(row_share=1, top_odds=1e6, evenness=1e-6)
    assert max(abs(x) for change in most.values() for x in change) == 40


def test_what_may_be_lost_by_recos_is_a_part_of_what_may_be_gained():
    gain, loss = (expected(moved=0.02, towards=x)["recos"] for x in (0.01, -0.01))
    assert gain.low == 0
    assert loss.low > -gain.high / 2
    assert -gain.points / 2 < loss.points < 0 < loss.high
    assert (gain.verdict, loss.verdict) == ("helps", "hurts")


# --- Input and output -----------------------------------------------------------------------------


def test_the_result_is_json_and_the_same_each_time(rng):
    X = crowded(rng)
    X[4] = 0
    found = diagnose(X)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert text == json.dumps(diagnose(X).to_dict())
    assert 4 in [row["row"] for row in json.loads(text)["odd_rows"]]
    assert json.loads(text)["expected"]["recos"].keys() == {"points", "low", "high", "verdict"}


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_unit_does_not_matter(rng, scale):
    X = crowded(rng).astype(np.float32)
    a, b = diagnose(X), diagnose(X * np.float32(scale))
    assert b.expected["center+cos"] == pytest.approx(a.expected["center+cos"], abs=1e-3)
    assert b.random_cosine == pytest.approx(a.random_cosine, abs=1e-5)
    assert b.advice == a.advice


@pytest.mark.parametrize("shape", [(3, 2), (12, 2), (40, 3), (5, 300)])
def test_small_inputs_give_finite_results(rng, shape):
    found = diagnose(rng.normal(size=shape))
    json.dumps(found.to_dict(), allow_nan=False)


def test_other_arrays_are_read(rng, xp):
    X = crowded(rng, 200)
    assert diagnose(xp.array(X)).row_share == pytest.approx(diagnose(X).row_share)


def test_bad_input_is_refused(rng):
    X = spread(rng)
    bad = X.copy()
    bad[321, 1] = np.nan
    cases = [
        (bad, r"^X: expected finite numbers, got NaN or infinity in row 321"),
        (X[0], r"^X: expected a matrix of shape \(rows, components\), got shape \(24,\)"),
        (X[:, :1], r"^X: expected rows of at least 2 components, got shape \(800, 1\)"),
        (X[:0], r"^X: expected at least 3 rows that are neither zero .* got 0 among 0"),
        (X[:2], r"^X: expected at least 3 rows that are neither zero .* got 2 among 2"),
        (np.ones((5, 3)), r"^X: expected at least 3 rows that are neither zero .* got 0 among 5"),
        (np.zeros((5, 3)), r"^X: expected at least 3 rows that are neither zero .* got 0 among 5"),
    ]
    for given, match in cases:
        with pytest.raises(ValueError, match=match):
            diagnose(given)
    with pytest.raises(ValueError, match=r"^memory: expected a positive number of bytes"):
        diagnose(X, memory="none")

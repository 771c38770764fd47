"""Statistics against published worked examples, R and SciPy.

Where a test says "R", the figures were printed by R 4.2.2 with lme4 1.1-31, lmerTest 3.1-3 and
coin 1.4-2.
"""

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recos.evaluate import statistics as s
from recos.evaluate.statistics.mixed import fit_reml

# Hamilton's depression scale, before and after: Hollander and Wolfe (1973), Nonparametric
# Statistical Methods, p. 29; the example of wilcox.test in R.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
DEPRESSION = np.subtract(BEFORE, AFTER)

# Darwin's maize, crossed less self-fertilised: the example of scipy.stats.wilcoxon.
MAIZE = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]

# Yields of barley in two years: Immer (1934), data set immer of Venables and Ripley's MASS.
IMMER_1 = (
    "81 105.4 119.7 109.7 98.3 146.6 142 150.7 191.5 145.7 82.3 77.3 78.4 131.3 89.6 119.8 121.4 "
    "124 140.8 124.8 98.9 89 69.1 89.3 104.1 86.9 77.1 78.9 101.8 96"
)
IMMER_2 = (
    "80.7 82.3 80.4 87.2 84.2 100.4 115.5 112.2 147.7 108.1 103.1 105.1 116.5 139.9 129.6 98.9 "
    "61.9 96.2 125.5 75.7 66.4 49.9 96.7 61.9 80.3 67.7 66.7 67.4 91.8 94.1"
)
IMMER = np.subtract(*(np.array(text.split(), float) for text in (IMMER_1, IMMER_2)))

# Student's sleep data, data set sleep of R: ties and a zero.
SLEEP = np.subtract(
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)

# Efron and Tibshirani (1993), An Introduction to the Bootstrap, tables 14.1 and 3.1.
SPATIAL = np.array([
    48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30,
    41.0,
])  # fmt: skip
LSAT = np.array([576, 635, 558, 578, 666, 580, 555, 661, 651, 605, 653, 575, 545, 572, 594.0])
GPA = np.array(
    [3.39, 3.3, 2.81, 3.03, 3.44, 3.07, 3, 3.43, 3.36, 3.13, 3.12, 2.74, 2.76, 2.88, 2.96]
)


GAINS = np.array([0.1, 0.3, 0.2, 0.4, 0.1, 0.6])


def jackknife(statistic, *rows):
    """Return how a statistic differs from its values without each observation."""
    n = len(rows[0])
    left = np.array([statistic(*(np.delete(row, i) for row in rows)) for i in range(n)])
    return left.mean() - left


class TestWilcoxon:
    def test_depression_of_hollander_and_wolfe(self):
        one = s.wilcoxon(DEPRESSION, alternative="greater")
        assert one.statistic == 40
        assert one.p == pytest.approx(0.01953, abs=5e-6)
        assert (one.low, one.high) == (pytest.approx(0.175), np.inf)  # R
        two = s.wilcoxon(DEPRESSION)
        assert two.estimate == pytest.approx(0.46)
        assert (two.low, two.high) == pytest.approx((0.010, 0.786))
        assert two.detail["exact"]

    def test_maize_of_darwin(self):
        two = s.wilcoxon(MAIZE)
        assert two.statistic == 96
        assert two.p == 0.041259765625  # the documentation of SciPy
        assert s.wilcoxon(MAIZE, alternative="greater").p == 0.0206298828125
        assert (two.estimate, two.low, two.high) == (25, 4, 41.5)  # R

    def test_barley_of_immer_has_ties(self):
        found = s.wilcoxon(IMMER)
        assert found.statistic == 368.5  # as r-tutor.com has it
        assert found.p == pytest.approx(0.005318, abs=5e-7)
        assert not found.detail["exact"]
        # R: 5.900029, 27.499955 and 18.89997; its search for a root stops 1e-4 away
        assert (found.low, found.high) == pytest.approx((5.9, 27.5), abs=1e-9)
        assert found.estimate == pytest.approx(18.9, abs=1e-9)

    def test_sleep_of_student_has_a_zero(self):
        found = s.wilcoxon(SLEEP)
        assert found.statistic == 0
        assert found.p == pytest.approx(0.009091, abs=5e-7)  # R
        assert found.detail["nonzero"] == 9
        assert (found.low, found.estimate, found.high) == pytest.approx((-2.95, -1.4, -1.05))  # R

    def test_effect_size_ranks_zeros_as_coin_does(self):
        a, b = [8, 4, 17, 12, 10, 13, 3, 7, 8, 6], [15, 7, 17, 13, 8, 13, 2, 18, 12, 14]
        # Universität Basel, R toolbox, Wilcoxon-Test: coin::wilcoxsign_test has Z = -1.7966
        found = s.wilcoxon(np.subtract(a, b))
        assert found.detail["r"] * np.sqrt(10) == pytest.approx(-1.7966, abs=5e-5)

    @given(
        st.lists(st.integers(-6, 6), min_size=2, max_size=60),
        st.sampled_from(["two-sided", "greater", "less"]),
    )
    def test_p_is_that_of_scipy(self, values, alternative):
        d = np.array(values, float)
        if not d.any():
            assert s.wilcoxon(d, alternative=alternative).p == 1
            return
        found = s.wilcoxon(d, alternative=alternative)
        method = "exact" if found.detail["exact"] else "asymptotic"
        expected = stats.wilcoxon(d, alternative=alternative, method=method, correction=True)
        assert found.p == pytest.approx(expected.pvalue, abs=1e-12)

    @given(st.lists(st.floats(-9, 9), min_size=4, max_size=70, unique=True))
    def test_interval_holds_the_estimate_and_turns_with_the_sign(self, values):
        d = np.round(values, 3)
        if d.min() == d.max():
            return
        found, turned = s.wilcoxon(d), s.wilcoxon(-d)
        assert found.low <= found.estimate <= found.high
        assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-9)

    @pytest.mark.parametrize(
        ("d", "lowest"),
        [([1.0, 2.0, 3.0], 0.25), ([1, 2, 3, 4, 5.0], 0.0625), ([0, 1, 1, 2, 2.0], 0.09)],
    )
    def test_interval_is_unbounded_where_few_differences_allow_none(self, d, lowest):
        found = s.wilcoxon(d)
        assert lowest <= found.p  # the least that so many differences can have
        assert (found.low, found.high) == (-np.inf, np.inf)
        found = s.wilcoxon(d, confidence=0.6)
        assert min(d) <= found.low < found.high <= max(d)
        for sign, alternative in ((1, "greater"), (-1, "less")):
            four = sign * np.array([1, 1, 2, 2])
            p = s.wilcoxon(four, alternative=alternative).p
            for factor, bounded in ((0.9, False), (1.1, True)):
                found = s.wilcoxon(four, alternative=alternative, confidence=1 - factor * p)
                assert np.isfinite([found.low, found.high]).any() == bounded
        six = s.wilcoxon([1, 2, 3, 4, 5, 6.0])
        assert (six.p, six.low, six.high) == (0.03125, 1, 6)

    def test_equal_differences_have_no_interval(self):
        for d in ([0.1] * 10, [0.0] * 3):
            found = s.wilcoxon(d)
            assert (found.estimate, found.low, found.high) == (d[0], None, None)

    def test_rounding_of_decimals_makes_no_difference(self):
        d = np.array([0.30, 0.10, -0.10, 0.20, 0.20])
        base = np.array([52.8, 17.3, 5.7, 60.1, 70.9])
        noisy = (base + d) - base  # the last bits break the ties
        assert len(np.unique(np.abs(noisy))) > len(np.unique(np.abs(d)))
        assert s.wilcoxon(noisy).statistic == s.wilcoxon(d).statistic == 13.5
        assert s.wilcoxon(noisy, digits=None).statistic != 13.5


class TestCorrelations:
    def test_williams_and_steiger_as_depcor(self):
        # Silver, Hittner and May (2006), A FORTRAN 77 program for comparing dependent correlations
        williams, steiger = s.williams(0.3, 0.4, 0.5, n=100), s.steiger(0.3, 0.4, 0.5, n=100)
        assert (williams.statistic, williams.p) == pytest.approx((-1.0767, 0.2843), abs=5e-5)
        assert (steiger.statistic, steiger.p) == pytest.approx((-1.0718, 0.2838), abs=5e-5)

    def test_williams_and_steiger_on_case_a_of_steiger(self):
        # Steiger (1980), Tests for comparing elements of a correlation matrix, p. 249. Williams: as
        # r.test(103, .4, .5, .1) of R's psych; Steiger: as cocor 1.1-4. He prints -.8913, having
        # rounded the covariance.
        williams, steiger = s.williams(0.4, 0.5, 0.1, n=103), s.steiger(0.4, 0.5, 0.1, n=103)
        assert (williams.statistic, williams.p) == pytest.approx((-0.89, 0.37), abs=0.005)
        assert steiger.statistic == pytest.approx(-0.8887185, abs=5e-8)

    def test_williams_as_psych(self):
        found = s.williams(0.7, 0.6, 0.5, n=50)  # R: r.test(50, .7, .6, .5)
        assert (found.statistic, found.p) == pytest.approx((1.01033031650365, 0.317510332477412))

    def test_bca_of_a_variance_by_efron_and_tibshirani(self, rng):
        # Table 14.2: 90 %, 2000 resamples. R's boot and bootstrap, with 19,999: 116.0 or 115.8 to
        # 260.7 or 260.6, as the documentation of Octave's statistics-resampling lists.
        draws = SPATIAL[rng.integers(26, size=(100_000, 26))].var(axis=1)
        influence = jackknife(np.var, SPATIAL)
        acceleration = (influence**3).sum() / (6 * (influence @ influence) ** 1.5)
        assert SPATIAL.var() == pytest.approx(171.5, abs=0.05)
        assert acceleration == pytest.approx(0.061, abs=0.0005)
        low, high = s.bca(SPATIAL.var(), draws, influence, confidence=0.9)
        assert (low, high) == pytest.approx((115.8, 259.6), abs=2.5)
        assert (low, high) == pytest.approx((116.0, 260.7), abs=1.5)

    def test_bca_of_a_correlation_by_efron_and_tibshirani(self):
        # The law school, p. 266: 90 %; R's boot with 99,999 resamples: 0.4214 to 0.9263, and 95 %
        # from 0.3175 to 0.9411
        found = s.pearson(LSAT, GPA, resamples=50_000, confidence=0.9)
        assert found.estimate == pytest.approx(0.776, abs=0.0005)
        assert (found.low, found.high) == pytest.approx((0.410, 0.923), abs=0.025)
        assert (found.low, found.high) == pytest.approx((0.4214, 0.9263), abs=0.012)
        wide = s.pearson(LSAT, GPA, resamples=50_000)
        assert (wide.low, wide.high) == pytest.approx((0.3175, 0.9411), abs=0.02)

    @pytest.mark.parametrize("kind", ["spearman", "pearson"])
    def test_interval_is_that_of_scipy(self, rng, kind):
        y = np.round(rng.normal(size=60), 1)
        x = np.round(y + rng.normal(size=60), 1)

        def rank(row):
            return stats.rankdata(row, axis=-1) if kind == "spearman" else row

        def statistic(x, y, axis):
            u, v = (rank(row) - rank(row).mean(axis=axis, keepdims=True) for row in (x, y))
            return (u * v).sum(axis) / np.sqrt((u * u).sum(axis) * (v * v).sum(axis))

        expected = stats.bootstrap(
            (x, y), statistic, paired=True, vectorized=True, n_resamples=20_000, rng=rng, axis=-1
        ).confidence_interval
        found = getattr(s, kind)(x, y, resamples=20_000)
        assert found.estimate == pytest.approx(statistic(x, y, 0), abs=1e-12)
        assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.01)

    @pytest.mark.parametrize("kind", ["spearman", "pearson"])
    def test_resamples_are_correlations_of_drawn_pairs(self, rng, kind):
        x, y = np.round(rng.normal(size=(2, 40)), 1)
        found = s.correlate([x], y, kind=kind, resamples=130, seed=5)
        again = np.random.default_rng(5).spawn(2)  # one for each hundred
        reference = stats.spearmanr if kind == "spearman" else stats.pearsonr
        for i, got in enumerate(found.resampled[0]):
            drawn = again[i // 100].integers(40, size=40)
            assert got == pytest.approx(reference(x[drawn], y[drawn]).statistic, abs=1e-12)

    @pytest.mark.parametrize("kind", ["spearman", "pearson"])
    def test_influence_is_the_derivative_by_weights(self, rng, kind):
        x, y = np.round(rng.normal(size=(2, 30)), 1)
        influence = s.correlate([x], y, kind=kind, resamples=2).influence[0]
        assert influence.sum() == pytest.approx(0, abs=1e-12)
        reference = stats.spearmanr if kind == "spearman" else stats.pearsonr
        often = 2000  # each pair so many times, and one of them once more
        base = np.tile(np.arange(30), often)
        change = [
            reference(x[more], y[more]).statistic - reference(x, y).statistic
            for more in (np.append(base, i) for i in range(3))
        ]
        assert np.array(change) * often == pytest.approx(influence[:3], abs=1e-4)

    def test_difference_of_two_variants(self, rng):
        human = rng.normal(size=400)
        noise = rng.normal(size=(2, 400))
        better, worse = human + 0.5 * noise[0], human + 2 * noise[1]
        found = s.compare_correlations(better, worse, human, kind="pearson")
        r12, r13 = (stats.pearsonr(row, human).statistic for row in (better, worse))
        r23 = stats.pearsonr(better, worse).statistic
        assert found.estimate == pytest.approx(r12 - r13)
        assert 0 < found.low < found.estimate < found.high
        assert found.p == 1 / 2000
        for name, test in (("williams", s.williams), ("steiger", s.steiger)):
            expected = test(r12, r13, r23, 400)
            assert found.detail[name]["statistic"] == pytest.approx(expected.statistic)

    def test_perfect_scores_have_no_test_but_a_difference(self, rng):
        human, x = rng.normal(size=(2, 20))
        found = s.compare_correlations(human, x, human)
        assert found.detail["first"] == 1
        assert found.estimate > 0
        assert "williams" not in found.detail

    def test_three_pairs_are_enough_for_a_difference(self):
        found = s.compare_correlations([1, 2, 3], [2, 1, 3], [1, 3, 2])
        assert found.estimate == pytest.approx(0.5 - -0.5)
        assert "williams" not in found.detail

    def test_equal_variants_do_not_differ(self, rng):
        human, x = rng.normal(size=(2, 50))
        found = s.compare_correlations(x, x, human)
        assert (found.estimate, found.low, found.high, found.p) == (0, 0, 0, 1)
        assert found.detail["williams"] == {"statistic": 0.0, "p": 1.0}

    def test_coverage_of_differences_that_are_not_there(self, rng):
        held = 0
        for _ in range(200):
            human = rng.normal(size=80)
            a, b = human + rng.normal(size=(2, 80))
            found = s.compare_correlations(a, b, human, resamples=400)
            held += found.low <= 0 <= found.high
        assert 180 <= held <= 199  # 95 % of 200, by chance from 181 to 198 with p = 0.99

    def test_p_of_the_influences_holds_where_that_of_williams_does_not(self, rng):
        rejected = dict.fromkeys(("influence", "williams", "steiger"), 0)
        for _ in range(400):  # the noise grows with the human score, and no variant is better
            human = np.round(rng.exponential(size=400))
            a, b = human + rng.normal(size=(2, 400)) * (human + 0.2)
            detail = s.compare_correlations(a, b, human, resamples=2).detail
            for name in rejected:
                rejected[name] += detail[name]["p"] < 0.05
        assert 8 <= rejected["influence"] <= 32  # 5 % of 400, and three times its spread
        assert min(rejected["williams"], rejected["steiger"]) > 40

    def test_p_belongs_to_the_interval(self, rng):
        human = rng.exponential(size=40)
        for size in (0.8, 1.0, 1.3):
            a, b = human + size * rng.normal(size=40), human + rng.normal(size=40)
            p = s.compare_correlations(a, b, human).p
            assert p > 0.01  # so that twenty draws or more are beyond 0
            for confidence, holds in ((1 - 0.8 * p, True), (1 - 1.2 * p, False)):
                found = s.compare_correlations(a, b, human, confidence=confidence)
                assert (found.low <= 0 <= found.high) == holds

    @pytest.mark.parametrize("much", [1e-6, 1e-8, 1e-10, 1e-12, 1e-14])
    def test_variants_that_are_nearly_equal(self, rng, much):
        human = rng.normal(size=60)
        x = human + rng.normal(size=60)
        found = s.compare_correlations(x + much * rng.normal(size=60), x, human, kind="pearson")
        assert found.low <= found.estimate <= found.high
        ps = [found.detail[name]["p"] for name in ("williams", "steiger") if name in found.detail]
        assert 0 <= found.detail["influence"]["p"] <= 1
        assert all(0 <= p <= 1 for p in ps)
        assert len(ps) == (0 if 1e-12 < much < 1e-7 else 2)
        assert np.isnan(s.williams(0.5 + 1e-9, 0.5, 1.0, n=100).p)
        assert np.isnan(s.steiger(0.5 + 1e-9, 0.5, 1.0, n=100).p)

    def test_mean_over_subsets(self, rng):
        human, x, z = np.round(rng.normal(size=(3, 90)), 1)
        subsets = np.repeat(["one", "two", "three"], [20, 30, 40])
        mixed = rng.permutation(90)
        found = s.correlate([x[mixed], z[mixed]], human[mixed], subsets=list(subsets[mixed]))
        for i, row in enumerate((x, z)):
            each = [
                stats.spearmanr(row[subsets == name], human[subsets == name]).statistic
                for name in ("one", "two", "three")
            ]
            assert found.estimates[i] == pytest.approx(np.mean(each))
        test = found.difference(0, 1)
        assert "williams" not in test.detail
        assert test.low < test.estimate < test.high
        assert found.resampled.std(axis=1) == pytest.approx(
            np.sqrt((found.influence**2).sum(axis=1)), rel=0.15
        )

    def test_threads_do_not_change_the_resamples(self, rng, monkeypatch):
        human, x = rng.normal(size=(2, 30))
        found = []
        for threads in ("1", "3"):
            monkeypatch.setenv("RECOS_NUM_THREADS", threads)
            found.append(s.correlate([x], human, resamples=350).resampled)
        assert (found[0] == found[1]).all()

    def test_variants_do_not_change_the_pairs_that_are_drawn(self, rng):
        human, x, z = rng.normal(size=(3, 30))
        alone, both = s.correlate([x], human), s.correlate([z, x], human)
        assert (alone.resampled[0] == both.resampled[1]).all()

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: s.spearman([1, 2, 3], [1, 1, 1]), "human: expected scores that differ"),
            (lambda: s.spearman([1, 2], [1, 2]), "human: expected a row of 3 or more numbers"),
            (lambda: s.spearman([1, np.nan, 3], [1, 2, 3]), "finite numbers, got nan at 1"),
            (lambda: s.spearman([1, 2, 3, 4], [1, 2, 3]), r"scores\[0\]: expected 3 .* got 4"),
            (lambda: s.correlate([[1, 2, 3]], [1, 2, 3], kind="kendall"), "got 'kendall'"),
            (lambda: s.spearman([1, 2, 3], [1, 2, 3], resamples=1), "resamples: expected 2"),
            (lambda: s.spearman([1, 2, 3], [1, 2, 3], confidence=95), "between 0 and 1, got 95"),
            (lambda: s.spearman([1, 2, 3], [1, 2, 3], subsets=["a", "b"]), "expected 3 labels"),
            (lambda: s.spearman([1, 2, 3, 4], [1, 2, 3, 4], subsets="aaab"), "3 or more pairs in"),
            (lambda: s.williams(1.0, 0.5, 0.5, 10), "between -1 and 1, got 1.0"),
            (lambda: s.steiger(0.1, 0.5, 0.5, 3), "n: expected 4 or more observations, got 3"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_correlated(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


class TestAcrossSettings:
    def test_benjamini_and_hochberg(self):
        # Benjamini and Hochberg (1995), section 4.2: four of fifteen are rejected at 0.05
        p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
            0.4262, 0.5719, 0.6528, 0.7590, 1.0,
        ]  # fmt: skip
        adjusted = s.benjamini_hochberg(p)
        assert (adjusted <= 0.05).tolist() == [True] * 4 + [False] * 11
        assert adjusted[3] == pytest.approx(0.0095 * 15 / 4)

    def test_benjamini_hochberg_of_diet(self):
        # McDonald (2014), Handbook of Biological Statistics, multiple comparisons: diet and
        # mammographic density. Five are below 0.25; white meat and proteins become 0.210.
        p = [
            0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216, 0.222, 0.251,
            0.269, 0.275, 0.34, 0.341, 0.384, 0.569, 0.594, 0.696, 0.762, 0.94, 0.942, 0.975, 0.986,
        ]  # fmt: skip
        adjusted = s.benjamini_hochberg(p)
        assert (adjusted < 0.2499).sum() == 5
        assert adjusted[3:5] == pytest.approx([0.210, 0.210])

    def test_sleep_of_student_by_t(self):
        found = s.paired_t(SLEEP)  # R: t.test(Pair(...)), t = -4.0621, p = 0.002833
        assert (found.statistic, found.p) == pytest.approx((-4.0621, 0.002833), abs=5e-5)
        assert (found.low, found.high) == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)
        assert found.detail["d_z"] == pytest.approx(-4.0621 / np.sqrt(10), abs=2e-5)

    def test_sign_test(self):
        # 8 gains or 9 of 9: (9 + 1) / 2^9
        found = s.sign_test([1.0] * 8 + [-1.0, 0.0], alternative="greater")
        assert (found.statistic, found.n, found.p) == (8, 9, pytest.approx(10 / 512))

    def test_cohens_d_of_unpaired_and_paired_scores(self, rng):
        a = rng.normal(size=50)
        b = a - 0.1 + rng.normal(size=50, scale=0.01)
        assert s.cohens_d(a, b) == pytest.approx(0.1, abs=0.03)
        assert s.cohens_dz(a - b) > 5
        assert s.cohens_dz(a - b) == pytest.approx(s.paired_t(a - b).statistic / np.sqrt(50))

    def test_leaving_one_out(self):
        d, groups = [1.0, 2.0, 3.0, -9.0, 2.0, 2.5], ["a", "a", "b", "b", "c", "c"]
        found = s.leave_one_out(d, groups)
        assert found.detail["means"] == pytest.approx({"a": -0.375, "b": 1.875, "c": -0.75})
        assert (found.low, found.high, found.n) == (-0.75, 1.875, 3)
        assert found.p == max(s.paired_t(d[2:]).p, s.paired_t(d[:2] + d[4:]).p, s.paired_t(d[:4]).p)

    def test_cluster_bootstrap_spreads_as_two_way_variance(self, rng):
        model, dataset = np.divmod(np.arange(400), 20)
        effects = rng.normal(size=20)[model] + rng.normal(size=20)[dataset]
        d = effects + rng.normal(size=400, scale=0.1)
        found = s.cluster_bootstrap(d, model, dataset)
        spread = np.sqrt(
            sum(np.var(list(s.means_by(d, by).values())) / 20 for by in (model, dataset))
        )
        assert (found.high - found.low) / (2 * 1.96) == pytest.approx(spread, rel=0.1)
        simple = 2 * 1.96 * d.std() / 20
        assert found.high - found.low > 2 * simple  # pretending independence is far too sure

    def test_cluster_bootstrap_repeats_itself(self, rng):
        d = rng.normal(size=36)
        models, datasets = np.divmod(np.arange(36), 6)
        assert s.cluster_bootstrap(d, models, datasets) == s.cluster_bootstrap(d, models, datasets)

    def test_two_way_t_with_one_model_is_the_t_test_of_data_sets(self):
        d, datasets = [0.3, 0.5, -0.1, 0.2, 0.4, 0.6], list("ssttuu")
        found = s.two_way_t(d, ["x"] * 6, datasets)
        one = s.paired_t(list(s.means_by(d, datasets).values()))
        assert (found.p, found.low, found.high) == pytest.approx((one.p, one.low, one.high))
        assert "this one model alone" in found.assumes
        above = s.two_way_t(d, ["x"] * 6, datasets, alternative="greater")
        assert (2 * above.p, above.high) == (pytest.approx(found.p), np.inf)

    @pytest.mark.parametrize(("models", "datasets"), [(1, 3), (1, 7), (2, 2), (3, 7), (11, 7)])
    @pytest.mark.parametrize("varies", ["models", "datasets"])
    def test_two_way_t_seldom_finds_a_gain_that_is_not_there(self, rng, models, datasets, varies):
        count, found = 1000, 0
        model, dataset = np.divmod(np.arange(models * datasets), datasets)
        size, level = (models, model) if varies == "models" and models > 1 else (datasets, dataset)
        for _ in range(count):
            d = rng.normal(size=size)[level] + rng.normal(size=len(level), scale=0.3)
            found += s.two_way_t(d, model, dataset).p < 0.05
        assert found < 80  # 5 % of 1000, and three times its spread

    def test_cluster_bootstrap_wants_six_of_each(self, rng):
        d, model = rng.normal(size=35), np.repeat(np.arange(5), 7)
        with pytest.raises(ValueError, match="models: expected 6 or more to draw from, got 5; use"):
            s.cluster_bootstrap(d, model, np.tile(np.arange(7), 5))
        with pytest.raises(ValueError, match="datasets: expected 6 or more to draw from, got 1"):
            s.cluster_bootstrap(d, np.arange(35), ["s"] * 35)

    def test_all_that_the_settings_allow(self, rng):
        a = rng.normal(size=6)
        full = s.across(a + GAINS, a, list("xxyyzz"), list("ststst"))
        assert set(full) == {
            "shapiro", "paired_t", "wilcoxon", "sign", "mixed_model", "per_model", "per_dataset",
            "two_way_t", "leave_one_model_out",
        }  # fmt: skip
        family = ["paired_t", "wilcoxon", "sign", "mixed_model"]
        assert [full[name].detail["adjusted_p"] for name in family] == pytest.approx(
            s.benjamini_hochberg([full[name].p for name in family])
        )
        assert all(test.assumes for test in full.values())
        assert full["paired_t"].detail["d"] == pytest.approx(s.cohens_d(a + GAINS, a))
        assert full["paired_t"].detail["differences"]["median"] == pytest.approx(0.25)
        six = s.across(*rng.normal(size=(2, 36)), *np.divmod(np.arange(36), 6))
        assert set(six) == set(full) | {"leave_one_dataset_out", "cluster_bootstrap"}
        one = s.across(a + GAINS, a, ["x"] * 6, list("stuvwx"))
        assert "leave_one_dataset_out" in one
        assert not {"per_model", "leave_one_model_out"} & set(one)
        even = s.across([0.1, 0.2, 0.3, 0.3, 0.2, 0.1], [0.0] * 6, list("xxxyyy"), list("stuuts"))
        assert even["per_dataset"].detail["df"] == 2
        assert "per_model" not in even  # their means differ by a rounding
        same = s.across(a, a, list("xxyyzz"), list("ststst"))
        assert set(same) == {"wilcoxon", "sign"}
        assert {test.p for test in same.values()} == {1.0}

    def test_results_are_json(self, rng):
        found = s.wilcoxon(DEPRESSION, alternative="greater").to_dict()
        assert json.loads(json.dumps(found, allow_nan=False))["high"] is None
        tests = s.across(*rng.normal(size=(2, 4)), list("xxyy"), list("stst"))
        json.dumps({name: test.to_dict() for name, test in tests.items()}, allow_nan=False)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: s.paired_t([1.0]), "differences: expected a row of 2 or more numbers"),
            (lambda: s.paired_t([1.0, 1.0]), "expected two values or more for a t-test, got 1.0"),
            (
                lambda: s.wilcoxon([1.0, np.inf]),
                "differences: expected finite numbers, got inf at 1",
            ),
            (lambda: s.two_way_t([1, 2, 2, 1], "xxyy", "stst"), "that differ, got none"),
            (lambda: s.means_by([1.0, 2.0], ["a"]), "groups: expected 2 labels.* got 1"),
            (lambda: s.leave_one_out([1.0, 2.0, 3.0], "aaa"), "two or more differences outside"),
            (lambda: s.wilcoxon([1.0, 2.0], alternative="bigger"), "'two-sided', .* got 'bigger'"),
            (lambda: s.wilcoxon([1.0, 2.0], confidence=2), "between 0 and 1, got 2"),
            (lambda: s.paired_t([1.0, 2.0], alternative="more"), "alternative: .* got 'more'"),
            (lambda: s.sign_test([1.0, 2.0], confidence=95), "between 0 and 1, got 95"),
            (lambda: s.mixed_model([1, 2, 3], [0, 1, 2], "abc", "xyz"), "the same 1 in all"),
            (lambda: s.mixed_model([1, 2], [1, 3], "ab", "xx", confidence=0), "share .* got 0"),
            (lambda: s.cohens_d([1.0, 1.0], [2.0, 2.0]), "scores that differ, got 1 alone, and 2"),
            (lambda: s.cohens_dz([1.0, 1.0]), "two values or more, got 1 alone"),
            (lambda: s.mixed_model([1, 2], [1, 2, 3], "ab", "xx"), "scores_b: expected 2 scores"),
            (lambda: s.across([1, 2, 3], [1, 2], "ab", "xx"), "scores_b: expected 3 scores"),
        ],
    )
    def test_bad_input(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_missing_scipy_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.delitem(sys.modules, "scipy.stats")
    with pytest.raises(
        ModuleNotFoundError, match=r"scipy is not .*: pip install 'recos\[compare\]'"
    ):
        s.paired_t([1.0, 2.0])


class TestMixedModel:
    """Against lme4: Bates et al. (2015), and data sets of the package."""

    def test_dyestuff(self):
        # Davies (1947), data set Dyestuff of lme4: 1764.05, 2451.25, REML 319.6543
        y = (
            "1545 1440 1440 1520 1580 1540 1555 1490 1560 1495 1595 1550 1605 1510 1560 "
            "1445 1440 1595 1465 1545 1595 1630 1515 1635 1625 1520 1455 1450 1480 1445"
        )
        fit = fit_reml(np.array(y.split(), float), np.ones((30, 1)), [np.repeat(np.arange(6), 5)])
        assert fit.variances == pytest.approx([1764.05, 2451.25], abs=1e-4)
        assert fit.criterion == pytest.approx(319.6542768, abs=1e-7)
        assert (fit.effects[0], fit.errors[0]) == pytest.approx((1527.5, 19.383412), abs=1e-6)
        assert fit.freedom[0] == pytest.approx(5, abs=1e-6)

    def test_a_variance_of_zero(self):
        # Box and Tiao (1973), data set Dyestuff2 of lme4: 0, 13.80631, REML 161.8283
        y = (
            "7.298 3.846 2.434 9.566 7.990 5.220 6.556 0.608 11.788 -0.892 0.110 10.386 13.434 "
            "5.510 8.166 2.212 4.852 7.092 9.288 4.980 0.282 9.014 4.458 9.446 7.198 1.722 4.782 "
            "8.106 0.758 3.758"
        )
        fit = fit_reml(np.array(y.split(), float), np.ones((30, 1)), [np.repeat(np.arange(6), 5)])
        assert fit.variances == pytest.approx([0, 13.80630963], abs=1e-7)
        assert fit.criterion == pytest.approx(161.8282778, abs=1e-7)
        assert fit.errors[0] == pytest.approx(0.67838803, abs=1e-8)

    def test_settings_may_be_missing(self):
        # R: lmer of the paper's table less BGE on STS12 to STS14 and GTE on SICK-R
        from recos.evaluate.published import DATASETS, scores

        table, rows = scores(), []
        for model in dict.fromkeys(model for model, _ in table):
            for i, dataset in enumerate(DATASETS):
                if (model, dataset) == ("GTE", "SICK-R") or (model == "BGE" and i < 3):
                    continue
                a, b = (float(table[model, metric][i]) for metric in ("recos", "cos"))
                rows.append((a, b, model, dataset))
        found = s.mixed_model(*zip(*rows, strict=True))
        assert found.n == 146
        assert found.detail["variances"] == pytest.approx(
            {"model": 53.08242, "dataset": 8.25652, "model x dataset": 33.31142,
             "residual": 0.06374547}, rel=1e-5,
        )  # fmt: skip
        assert found.detail["reml_criterion"] == pytest.approx(553.422195611, abs=1e-7)
        assert found.detail["effects"]["intercept"] == pytest.approx(
            {"estimate": 66.50302, "error": 2.544565, "df": 12.45226, "t": 26.135323,
             "p": 2.96212e-12}, rel=1e-5,
        )  # fmt: skip
        assert found.detail["effects"]["method"] == pytest.approx(
            {"estimate": 0.3060273973, "error": 0.04179056, "df": 72, "t": 7.322883,
             "p": 2.794733e-10}, rel=1e-6,
        )  # fmt: skip

    def test_one_model(self):
        # R: lmer(score ~ metric + (1 | dataset)) of CLIP-ViT
        a = [77.39, 64.81, 59.34, 67.55, 72.78, 66.53, 71.61]
        b = [76.92, 63.96, 57.98, 66.19, 72.41, 65.29, 70.53]
        found = s.mixed_model(a, b, ["CLIP-ViT"] * 7, range(7))
        assert found.detail["variances"] == pytest.approx(
            {"dataset": 36.66484527, "residual": 0.08442381}, rel=1e-6
        )
        assert found.detail["reml_criterion"] == pytest.approx(48.8916074713, abs=1e-8)
        assert found.detail["effects"]["intercept"]["df"] == pytest.approx(6.01379967, rel=1e-6)

    @pytest.mark.parametrize("count", [3, 7])
    def test_as_many_models_as_data_sets(self, rng, count):
        model, dataset = np.divmod(np.arange(count**2), count)
        base = 3 * rng.normal(size=count)[model] + 5 * rng.normal(size=count)[dataset]
        a, b = base + rng.normal(size=(2, count**2))
        found, turned = s.mixed_model(a, b, model, dataset), s.mixed_model(a, b, dataset, model)
        assert set(found.detail["variances"]) == {"model", "dataset", "model x dataset", "residual"}
        for one, other in ("model", "dataset"), ("dataset", "model"):
            assert found.detail["variances"][one] == pytest.approx(
                turned.detail["variances"][other], rel=1e-4
            )
        assert found.p == pytest.approx(turned.p, rel=1e-5)

    def test_the_same_factor_under_other_names_is_left_out(self, rng):
        a, b = rng.normal(size=(2, 6)) + np.repeat(rng.normal(size=3), 2)
        found = s.mixed_model(a, b, list("xxyyzz"), list("ccaabb"))
        assert set(found.detail["variances"]) == {"model", "residual"}

    def test_interval_is_that_of_the_paired_t_test(self, rng):
        a, b = rng.normal(size=(2, 12)) + rng.normal(size=12)
        found = s.mixed_model(a, b, list("aaabbbcccddd"), list("xyz" * 4))
        paired = s.paired_t(a - b)
        assert (found.statistic, found.p) == pytest.approx((paired.statistic, paired.p), rel=1e-5)
        assert (found.low, found.high) == pytest.approx((paired.low, paired.high), rel=1e-5)
        assert found.detail["variances"]["model x dataset"] > 0

    def test_t_is_another_where_settings_have_no_variance_of_their_own(self):
        turn = np.resize([0.5, -0.5], 12)  # what one score gains the other loses
        base = np.repeat([1.0, 2.0, 3.0, 4.0], 3)
        a, b = base + turn + 0.1, base - turn
        found = s.mixed_model(a, b, list("aaabbbcccddd"), list("xyz" * 4))
        assert found.detail["variances"]["model x dataset"] == 0
        assert found.statistic > 1.2 * s.paired_t(a - b).statistic
        assert "variance above 0" in found.assumes

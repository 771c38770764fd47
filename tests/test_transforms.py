"""Transforms: what they give, that they behave as scikit-learn's, and that an index keeps them."""

import json
import pickle
import re

import numpy as np
import pytest
from scipy import stats

import recos
from recos import (
    TRANSFORMS,
    Center,
    Chain,
    DamagedIndexError,
    Index,
    Rank,
    RemoveTop,
    RowCenter,
    Standardize,
    Whiten,
    find_transform,
    paired,
    topk,
)
from recos.transforms import Transform

EVERY = [Center(), Standardize(), RemoveTop(2), Whiten(), Whiten(3), RowCenter(), Rank()]
EVERY += [Chain([Rank(), RowCenter()]), Chain(["center", Whiten(4)])]
every = pytest.mark.parametrize("transform", EVERY, ids=repr)


def skewed(rng, n=500, d=6):
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 3


def fresh(transform):
    return type(transform)(**transform.get_params())


# --- What they give -------------------------------------------------------------------------------


def test_row_centring_makes_the_cosine_the_pearson_correlation(rng):
    X, Y = rng.normal(size=(2, 20, 9)) + 5
    found = paired(*(RowCenter().transform(Z) for Z in (X, Y)), metric="cos")
    expected = [stats.pearsonr(x, y).statistic for x, y in zip(X, Y, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_row_centring_makes_recos_the_correlation_over_that_of_sorted_rows(rng):
    """The author's recor: the covariance over that of both sorted, against each other where < 0."""
    X, Y = rng.normal(size=(2, 20, 9)) + 5
    found = paired(*(RowCenter().transform(Z) for Z in (X, Y)), metric="recos")
    for x, y, score in zip(X, Y, found, strict=True):
        covariance = np.cov(x, y)[0, 1]
        bound = np.cov(np.sort(x), np.sort(y)[:: 1 if covariance > 0 else -1])[0, 1]
        assert score == pytest.approx(covariance / abs(bound), abs=1e-12)


def test_ranks_make_the_cosine_the_spearman_correlation(rng):
    X, Y = rng.integers(0, 5, (2, 20, 9)).astype(float)  # with ties
    transform = find_transform("rank+rowcenter")
    found = paired(transform.transform(X), transform.transform(Y), metric="cos")
    expected = [stats.spearmanr(x, y).statistic for x, y in zip(X, Y, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_ranks_are_scipys(rng):
    X = rng.integers(-3, 3, (40, 11)).astype(float)
    np.testing.assert_array_equal(Rank().transform(X), stats.rankdata(X, axis=1))


def test_transforms_of_components_are_scikit_learns(rng):
    decomposition = pytest.importorskip("sklearn.decomposition")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    X, Y = skewed(rng), skewed(rng, 7)
    expected = preprocessing.StandardScaler().fit(X).transform(Y)
    np.testing.assert_allclose(Standardize().fit(X).transform(Y), expected, atol=1e-12)
    expected = decomposition.PCA(3, whiten=True, svd_solver="full").fit(X).transform(Y)
    found = Whiten(3).fit(X).transform(Y) * np.sqrt(499 / 500)  # it divides by n - 1
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    top = decomposition.PCA(2, svd_solver="full").fit(X).components_
    rest = Y - X.mean(axis=0)
    rest -= rest @ top.T @ top
    np.testing.assert_allclose(RemoveTop(2).fit(X).transform(Y), rest, atol=1e-9)


def test_whitened_rows_vary_alike_and_stay_near_their_axes(rng):
    X = skewed(rng)
    white = Whiten().fit_transform(X)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(6), atol=1e-9)
    crossed = (X - X.mean(axis=0)).T @ white
    np.testing.assert_allclose(crossed, crossed.T, atol=1e-8)  # as no rotated form does
    assert (np.linalg.eigvalsh(crossed) > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_without_variance_become_zero(rng, dtype):
    X = skewed(rng).astype(dtype)
    X = np.hstack([X, X[:, :2] + X[:, 2:4], np.full((500, 1), 7)]).astype(dtype)
    white = Whiten().fit_transform(X)
    assert np.abs(white).max() < 20
    assert np.linalg.matrix_rank(white, tol=1e-2) == 6
    assert (Standardize().fit_transform(X)[:, -1] == 0).all()


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
@pytest.mark.parametrize("name", ["center", "standardize", "removetop", "whiten", "rowcenter"])
def test_cosines_do_not_depend_on_the_unit(rng, name, scale):
    X = skewed(rng).astype(np.float32)
    a, b = (find_transform(name).fit_transform(Z) for Z in (X, X * np.float32(scale)))
    found = [paired(Z[:50], Z[50:100], metric="cos") for Z in (a, b)]
    np.testing.assert_allclose(found[1], found[0], atol=2e-5)


@every
def test_kinds_and_dtypes_come_back(transform, rng, xp):
    X = skewed(rng).astype(np.float32)
    transform = fresh(transform).fit(X)
    expected = transform.transform(X[:5])
    assert expected.dtype == np.float32
    wide = transform.transform(X[:5].astype(np.float64))
    assert wide.dtype == np.float64
    np.testing.assert_allclose(expected, wide, rtol=1e-4, atol=2e-4)
    found = transform.transform(xp.array(X[:5]))
    assert xp.owns(found)
    assert xp.dtype_of(found) == "float32"
    np.testing.assert_allclose(xp.numpy(found), expected, rtol=1e-6)
    assert transform.transform(X[:5].astype(np.float16)).dtype == np.float16


def test_a_chain_learns_from_what_comes_before(rng):
    X, Y = skewed(rng), skewed(rng, 7)
    chain = Chain([RowCenter(), Center(), Whiten(3)]).fit(X)
    first, second = RowCenter().transform(X), RowCenter().transform(Y)
    center = Center().fit(first)
    white = Whiten(3).fit(center.transform(first))
    expected = white.transform(center.transform(second))
    np.testing.assert_allclose(chain.transform(Y), expected, atol=1e-10)
    assert not chain.steps[1].fitted  # the steps that were given are left alone


# --- As scikit-learn's estimators -----------------------------------------------------------------


@every
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass(transform):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    narrow = isinstance(transform, RemoveTop) or re.search(
        r"Whiten\(components=[34]", repr(transform)
    )
    if narrow:
        pytest.skip("the checks use fewer components than it asks for")
    failed = [x for x in checks.check_estimator(fresh(transform), on_fail=None) if x["exception"]]
    assert not [(x["check_name"], x["exception"]) for x in failed if x["status"] == "failed"]


@every
def test_they_are_cloned_pickled_and_put_into_pipelines(transform, rng):
    base = pytest.importorskip("sklearn.base")
    pipeline = pytest.importorskip("sklearn.pipeline")
    X = skewed(rng)
    fitted = fresh(transform).fit(X)
    expected = fitted.transform(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), expected)
    clone = base.clone(fitted)
    assert not hasattr(clone, "n_features_in_")
    assert repr(clone) == repr(fitted)
    found = pipeline.make_pipeline(clone, Center()).fit_transform(X)
    np.testing.assert_allclose(found, expected - expected.mean(axis=0), atol=1e-10)


@every
def test_they_are_stored_as_values_and_arrays(transform, rng):
    X = skewed(rng)
    fitted = fresh(transform).fit(X)
    stored = fitted.to_dict()
    json.dumps(stored, default=np.ndarray.tolist)
    again = Transform.from_dict(stored)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 6 features"):
        again.transform(X[:, :2])


def test_those_that_could_not_be_made_again_are_not_stored(rng, tmp_path):
    class Twice(Transform):
        def _apply(self, rows):
            return 2 * rows

    class Impostor(Twice):
        pass

    class Longer(Chain):
        pass

    Impostor.__name__ = "Center"
    X = skewed(rng)
    for made in (Twice(), Impostor(), Chain([Twice()]), Longer(["center"])):
        fitted = made.fit(X)
        with pytest.raises(TypeError, match=r"expected one of recos's own to store .* got "):
            fitted.to_dict()
        index = Index(X, transform=fitted)
        assert len(index.search(X[:2], 3).indices) == 2
        with pytest.raises(TypeError, match=r"transform: expected .* or a Chain of them"):
            index.save(tmp_path / "index")
        with pytest.raises(TypeError, match=r"transform: expected .* or a Chain of them"):
            Index.build(tmp_path / "index", [X], transform=fitted)
        assert not list(tmp_path.glob("index/*.json"))


def test_parameters_can_be_changed():
    assert RemoveTop().set_params(k=3).get_params() == {"k": 3}
    with pytest.raises(ValueError, match=r"RemoveTop: expected parameters k, got components"):
        RemoveTop().set_params(components=3)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_they_are_found_by_name(name):
    assert type(find_transform(name)) is TRANSFORMS[name]


def test_bad_input_is_refused(rng):
    X = skewed(rng)
    bad = X.copy()
    bad[2, 1] = np.inf
    cases = [
        (
            lambda: find_transform("pca"),
            r"^transform: expected one of center, standardize, .*'pca'",
        ),
        (lambda: find_transform("center+"), r"^transform: expected one of center, .* got ''"),
        (lambda: Center().fit(bad), r"^X: expected finite numbers, got NaN or infinity in row 2"),
        (lambda: Center().fit(X).transform(bad), r"^X: expected finite numbers, got .* in row 2"),
        (lambda: Center().fit(X[0]), r"^X: expected a matrix of shape \(rows, components\)"),
        (lambda: Center().fit(X[:0]), r"^X: expected at least one row to learn from, got none"),
        (lambda: Center().transform(X), r"^Center: expected a transform that has learnt"),
        (lambda: Chain(["center"]).transform(X), r"^Chain: expected a transform that has learnt"),
        (lambda: Whiten().to_dict(), r"^Whiten: expected a transform that has learnt"),
        (lambda: Whiten().fit(X[:1]), r"^X: expected at least two rows to learn directions from"),
        (lambda: Whiten(7).fit(X), r"^components: expected at most n_features = 6, got 7"),
        (lambda: RemoveTop(6).fit(X), r"^X: expected more components than k = 6, got"),
        (lambda: RemoveTop(0).fit(X), r"^k: expected a whole number of at least 1, got 0"),
        (lambda: RowCenter().fit(X).transform(X[:, :2]), r"^X has 2 features, but RowCenter is"),
    ]
    for call, match in cases:
        with pytest.raises(ValueError, match=match):
            call()


# --- In an index ----------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("metric", ["recos", "cos"])
def test_an_index_transforms_what_is_added_and_queries(transform, metric, rng, tmp_path):
    X, Q = skewed(rng).astype(np.float32), skewed(rng, 4).astype(np.float32)
    fitted = fresh(transform).fit(X[:400])
    index = Index(X[:400], transform=fresh(transform), metric=metric)
    index.add(X[400:])
    expected = topk(fitted.transform(Q), fitted.transform(X), 5, metric=metric)
    assert index.search(Q, 5).indices.tolist() == expected.indices.tolist()
    index.save(tmp_path / "index")
    built = Index.build(
        tmp_path / "built", iter([X[:100], X[100:]]), transform=fitted, metric=metric
    )
    for folder in ("index", "built"):
        found = Index.load(tmp_path / folder)
        found.verify()
        np.testing.assert_array_equal(found.search(Q, 5).indices, expected.indices)
        np.testing.assert_allclose(found.search(Q, 5).scores, expected.scores, atol=1e-6)
    assert len(built) == 500
    found.add(X[:1], ids=[1000])
    found.save(tmp_path / "built")
    again = Index.load(tmp_path / "built")
    again.verify()
    assert again.search(X[:1], 2).scores.tolist() == found.search(X[:1], 2).scores.tolist()
    found.save(tmp_path / "elsewhere")
    assert Index.load(tmp_path / "elsewhere").search(Q, 5).indices.tolist() == (
        found.search(Q, 5).indices.tolist()
    )


def test_a_transform_is_stored_without_pickle_and_its_damage_is_found(rng, tmp_path):
    Index(skewed(rng), transform="center+whiten").save(tmp_path)
    content = json.loads((tmp_path / "recos-index.json").read_bytes())
    assert content["version"] == 2
    files = sorted(tmp_path.glob("*transform*.npy"))
    assert len(files) == 3  # two means and a matrix
    for file in files:
        assert np.load(file, allow_pickle=False).dtype == np.float64
    data = bytearray(files[0].read_bytes())
    data[-3] ^= 1
    files[0].write_bytes(data)
    with pytest.raises(DamagedIndexError, match="transform"):
        Index.load(tmp_path)


def test_folders_without_a_transform_are_what_older_versions_read(rng, tmp_path):
    Index(skewed(rng)).save(tmp_path)
    content = json.loads((tmp_path / "recos-index.json").read_bytes())
    assert content["version"] == 1
    assert "transform" not in content["index"]
    assert Index.load(tmp_path).transform is None


def test_bad_transforms_and_rows_of_an_index_are_refused(rng):
    X = skewed(rng)
    bad = X.copy()
    bad[2, 1] = np.nan
    index = Index(X, transform="whiten")
    cases = [
        (lambda: Index(X, transform="pca"), r"^transform: expected one of center"),
        (lambda: Index(bad, transform="center"), r"^vectors: expected finite numbers, .* in row 2"),
        (lambda: index.add(bad), r"^vectors: expected finite numbers, got .* in row 2"),
        (lambda: index.search(bad), r"^queries: expected finite numbers, got .* in row 2"),
        (lambda: index.add(X[:, :3]), r"^vectors: expected 6 components as the others, got 3"),
        (lambda: index.search(X[:, :3]), r"^queries: expected a matrix of shape \(n, 6\)"),
        (
            lambda: Index(X[:, :3], transform=Center().fit(X)),
            r"^transform: expected one fitted to 3 components as the vectors have, got .* 6",
        ),
        (
            lambda: Index(X[:0], transform="center"),
            r"^transform: expected a fitted one, as there are no vectors to learn from",
        ),
    ]
    for call, match in cases:
        with pytest.raises(ValueError, match=match):
            call()


def test_importing_transforms_loads_nothing_of_scikit_learn():
    import subprocess
    import sys

    code = (
        "import sys, recos; recos.Center().fit([[1.0], [2.0]]); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert recos.Center.__module__ == "recos.transforms"

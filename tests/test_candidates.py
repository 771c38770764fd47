"""Engines as sources of candidates: exact results where they are certified, and honest masks."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recos
from recos import candidates, engines
from recos.search import TopK

WIDTH = 24


def gaussian(rng, n, d):
    return rng.standard_normal((n, d))


def heavy_tailed(rng, n, d):
    return rng.standard_t(2, (n, d))


def clustered(rng, n, d):
    return rng.standard_normal((20, d))[rng.integers(0, 20, n)] + 0.3 * rng.standard_normal((n, d))


def crowded(rng, n, d):
    return rng.standard_normal((n, d)) + 3


def rogue(rng, n, d):
    return rng.standard_normal((n, d)) * np.r_[20, np.ones(d - 1)]


def repeated(rng, n, d):
    return rng.standard_normal((n // 20, d))[rng.integers(0, n // 20, n)]


def with_odd_rows(rng, n, d):
    X = rng.standard_normal((n, d)) + 1
    X[3], X[5], X[7], X[8] = 0, -1, 1, np.eye(d)[0]
    X[9], X[10] = -np.eye(d)[1], X[11] * 1e-30
    return X


def discrete(rng, n, d):
    return rng.integers(-1, 2, (n, d))


KINDS = [
    gaussian,
    heavy_tailed,
    clustered,
    crowded,
    rogue,
    repeated,
    with_odd_rows,
    discrete,
]
all_kinds = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)


class BruteForce:
    """The protocol by hand."""

    exact = True

    def __init__(self, rows):
        self.rows, self.asked = rows, []

    def __len__(self):
        return len(self.rows)

    def propose(self, queries, count):
        self.asked.append((len(queries), count))
        return np.argsort(-queries @ self.rows.T, axis=1)[:, :count]


def data(make, n=2000, queries=40, d=WIDTH, seed=0, dtype=np.float32):
    X = make(np.random.default_rng(seed), n + queries, d).astype(dtype)
    return X[n:], X[:n]


def faiss_flat(rows):
    pytest.importorskip("faiss")
    return engines.FaissEngine.build(rows)


def usearch_exact(rows):
    pytest.importorskip("usearch")
    return engines.UsearchEngine.build(rows, exact=True)


exact_engines = pytest.mark.parametrize("engine", [BruteForce, faiss_flat, usearch_exact])


def check_certified(found, truth):
    """Certified results are the exact ones, to the last bit."""
    certified = found.certified
    np.testing.assert_array_equal(found.indices[certified], truth.indices[certified])
    np.testing.assert_array_equal(found.scores[certified], truth.scores[certified])


@all_kinds
@exact_engines
def test_certified_results_are_those_of_topk(make, engine):
    queries, X = data(make)
    folded = candidates.fold(X)
    found = candidates.search(queries, folded, engine(folded.rows), 10, certify=True)
    assert found.certified.all()
    check_certified(found, recos.topk(queries, X, 10))


@all_kinds
@pytest.mark.parametrize("k", [1, 5, 50])
def test_proofs_without_searching_everything_are_right(monkeypatch, make, k):
    monkeypatch.setattr(candidates, "_EXHAUSTIVE", 1)
    monkeypatch.setattr(candidates, "topk", None)  # all rows are proposed before it is called
    for seed in range(3):
        queries, X = data(make, n=800, seed=seed)
        folded = candidates.fold(X)
        engine = BruteForce(folded.rows)
        found = candidates.search(queries, folded, engine, k, certify=True, overfetch=1)
        assert found.certified.all()
        check_certified(found, recos.topk(queries, X, k))


def test_most_are_proven_by_a_few_candidates():
    queries, X = data(gaussian, n=20_000, queries=100, d=64)
    folded = candidates.fold(X)
    engine = BruteForce(folded.rows)
    found = candidates.search(queries, folded, engine, 10, certify=True)
    assert found.certified.all()
    assert engine.asked[0] == (100, 15)
    assert all(queries < 50 for queries, _ in engine.asked[1:])


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 12), st.integers(1, 5))
def test_no_claim_is_wrong(seed, d, n, k):
    rng = np.random.default_rng(seed)
    values = rng.choice([-1e20, -2.0, -1.0, -1e-20, 0.0, 1e-20, 1.0, 1.0 + 2**-20, 3.0], (n + 5, d))
    X = values.astype(np.float64)
    queries, X = X[n:], X[:n]
    folded = candidates.fold(X)
    truth = recos.topk(queries, X, k)
    for overfetch in (1, 1.5):
        found = candidates.search(
            queries, folded, BruteForce(folded.rows), k, overfetch=overfetch, certify=True
        )
        assert found.certified.all()
        check_certified(found, truth)


def adversarial(rng, d):
    """Return rows of which many score nearly alike, and some beat what inner products say."""
    base = np.sort(rng.standard_normal(d))
    near = base + 1e-4 * rng.standard_normal((300, d))
    peaks = np.eye(d)[rng.integers(0, d, 60)] * rng.choice([1, 30], (60, 1))
    curved = np.sign(base) * np.abs(base) ** rng.uniform(0.2, 5, (300, 1))
    return np.concatenate([near, peaks + 0.01 * base, curved, near[:50], -near[:50]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adversarial_rows_break_no_proof(monkeypatch, seed, dtype):
    monkeypatch.setattr(candidates, "_EXHAUSTIVE", 1)
    rng = np.random.default_rng(seed)
    X = adversarial(rng, WIDTH).astype(dtype)
    queries = np.concatenate([X[::7], -X[::50], rng.standard_normal((9, WIDTH))]).astype(dtype)
    folded = candidates.fold(X)
    for k in (1, 3, 20):
        found = candidates.search(
            queries, folded, BruteForce(folded.rows), k, certify=True, overfetch=1
        )
        check_certified(found, recos.topk(queries, X, k))
        assert found.certified.all()


def test_all_scores_negative():
    queries, X = data(crowded, n=500)
    folded = candidates.fold(X)
    found = candidates.search(-queries, folded, BruteForce(folded.rows), 5, certify=True)
    assert (found.scores < 0).all()
    assert found.certified.all()
    check_certified(found, recos.topk(-queries, X, 5))


def test_loose_rows_are_always_scored():
    queries, X = data(crowded, n=500)
    X[[17, 400]] = queries[:2] = np.eye(WIDTH)[:2]
    folded = candidates.fold(X, coordinates=1)
    assert set(folded.loose) == {17, 400}
    assert not folded.rows[[17, 400], :WIDTH].any()
    found = candidates.search(queries[:2], folded, BruteForce(folded.rows), 1)
    assert found.scores[:, 0].tolist() == [1, 1]  # which no row has that is proposed
    assert not found.certified.any()


def test_zero_rows_and_zero_queries():
    queries, X = data(gaussian, n=100)
    X[4], queries[0] = 0, 0
    folded = candidates.fold(X)
    assert not folded.rows[4, :WIDTH].any()
    assert 4 not in BruteForce(folded.rows).propose(folded.queries(queries[1:]), 10)
    found = candidates.search(queries, folded, BruteForce(folded.rows), 100, certify=True)
    check_certified(found, recos.topk(queries, X, 100))
    assert found.certified.all()
    assert (candidates.fold(np.zeros((3, 2))).rows == 0).all()


def test_more_than_there_are():
    queries, X = data(gaussian, n=7)
    folded = candidates.fold(X)
    found = candidates.search(queries, folded, BruteForce(folded.rows), 10)
    np.testing.assert_array_equal(found.indices, recos.topk(queries, X, 10).indices)
    assert found.indices.shape == (len(queries), 7)


def test_no_queries():
    _, X = data(gaussian, n=7)
    folded = candidates.fold(X)
    found = candidates.search(X[:0], folded, BruteForce(folded.rows), 3, certify=True)
    assert found.scores.shape == found.indices.shape == (0, 3)


def test_no_rows():
    queries, X = data(gaussian, n=7)
    folded = candidates.fold(X[:0])
    found = candidates.search(queries, folded, BruteForce(folded.rows), 3, certify=True)
    assert found.scores.shape == found.indices.shape == (len(queries), 0)


class Sloppy(BruteForce):
    """Says the same row twice, leaves one out, and proposes fewer than it is asked for."""

    def propose(self, queries, count):
        which = super().propose(queries, count)
        which[:, 1] = which[:, 0]
        which[:, 2:] = -1
        return which


def test_missing_and_repeated_rows():
    queries, X = data(gaussian, n=100)
    folded = candidates.fold(X)
    engine = Sloppy(folded.rows)
    engine.exact = False
    found = candidates.search(queries, folded, engine, 3, certify=True)
    assert (found.indices[:, 0] >= 0).all()
    assert (found.indices[:, 1:] == -1).all()
    assert (found.scores[:, 1:] == -np.inf).all()
    assert not found.certified.any()


def test_an_exact_engine_that_proposes_too_few_proves_nothing():
    queries, X = data(gaussian, n=300)
    folded = candidates.fold(X)
    found = candidates.search(queries, folded, Sloppy(folded.rows), 3, certify=True)
    assert found.certified.all()  # as all rows were searched instead
    check_certified(found, recos.topk(queries, X, 3))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_dtypes(dtype):
    queries, X = data(gaussian, n=300)
    queries, X = (10 * queries).astype(dtype), (10 * X).astype(dtype)
    folded = candidates.fold(X)
    found = candidates.search(queries, folded, BruteForce(folded.rows), 5, certify=True)
    truth = recos.topk(queries, X, 5)
    assert found.scores.dtype == truth.scores.dtype
    check_certified(found, truth)


def test_other_array_libraries():
    torch = pytest.importorskip("torch")
    queries, X = (torch.from_numpy(x) for x in data(gaussian, n=300))
    folded = candidates.fold(X)
    assert folded.vectors is X
    found = candidates.search(queries, folded, BruteForce(folded.rows), 5)
    assert isinstance(found.scores, torch.Tensor)
    assert isinstance(found.indices, torch.Tensor)
    assert isinstance(found.certified, np.ndarray)


def recall_of(engine, corpus, queries, truth):
    found = candidates.search(queries, corpus, engine, 10, certify=True)
    assert not found.certified.any()
    return recos.recall(TopK(found.scores, found.indices), truth)


@pytest.fixture(scope="module")
def embeddings():
    """Rows near a few dimensions, as embeddings are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5050, 12)) @ rng.standard_normal((12, 64))
    X = (X + 0.2 * rng.standard_normal(X.shape)).astype(np.float32)
    queries, X = X[:50], X[50:]
    return queries, X, candidates.fold(X), recos.topk(queries, X, 10)


@pytest.mark.parametrize("factory", ["HNSW32", "IVF8,Flat", "PQ18x4,RFlat"])
def test_recall_of_faiss(embeddings, factory):
    faiss = pytest.importorskip("faiss")
    queries, _, folded, truth = embeddings
    engine = engines.FaissEngine.build(folded.rows, factory)
    if factory.startswith("HNSW"):
        engine.index.hnsw.efSearch = 128
    elif factory.startswith("IVF"):
        faiss.extract_index_ivf(engine.index).nprobe = 6
    else:
        engine.index.k_factor = 10
    assert recall_of(engine, folded, queries, truth) >= 0.97


def test_recall_of_usearch(embeddings):
    pytest.importorskip("usearch")
    queries, X, folded, truth = embeddings
    by_product = engines.UsearchEngine.build(folded.rows, expansion_search=128)
    by_recos = engines.UsearchEngine.build_recos(X, expansion_search=128)
    assert recall_of(by_product, folded, queries, truth) >= 0.98
    found = candidates.search(queries, X, by_recos, 10, overfetch=1)
    assert recos.recall(TopK(found.scores, found.indices), truth) >= 0.98
    one = candidates.search(queries[:1], X, by_recos, 10, overfetch=1)
    np.testing.assert_array_equal(one.indices[0], found.indices[0])


@pytest.mark.parametrize("d", [1, 2, 5, 16, 33])
def test_the_compiled_distance_is_one_less_recos(d):
    import ctypes

    from recos._kernels.distance import one_less_recos

    rng = np.random.default_rng(d)
    u, v = rng.standard_normal((2, 50, d)).astype(np.float32)
    u[0] = 0
    function = one_less_recos(d)
    pointer = ctypes.POINTER(ctypes.c_float)
    both = [np.hstack([x, np.sort(x, axis=1)]) for x in (u, v)]
    got = [function.ctypes(*(x[i].ctypes.data_as(pointer) for x in both)) for i in range(len(u))]
    np.testing.assert_allclose(got, 1 - recos.paired(u, v), atol=1e-4)


def test_a_plain_cosine_engine_needs_no_folding():
    queries, X = data(gaussian, n=500)
    found = candidates.search(
        queries, X, BruteForce(X / np.linalg.norm(X, axis=1)[:, None]), 5, overfetch=20
    )
    assert recos.recall(TopK(found.scores, found.indices), recos.topk(queries, X, 5)) > 0.95
    assert not found.certified.any()


def test_an_engine_that_holds_other_rows_is_noticed():
    queries, X = data(gaussian)
    folded = candidates.fold(X)
    other = BruteForce(np.roll(folded.rows, 1, axis=0))
    with pytest.raises(ValueError, match=r"engine: expected rows in the order of their inner prod"):
        candidates.search(queries, folded, other, 5, certify=True)


def test_bad_input():
    queries, X = data(gaussian, n=100)
    folded = candidates.fold(X)
    engine = BruteForce(folded.rows)
    with pytest.raises(ValueError, match=r"certify: expected folded vectors, got ndarray; pass"):
        candidates.search(queries, X, engine, certify=True)
    with pytest.raises(ValueError, match=r"expected the 100 rows of the corpus, .* that holds 99"):
        candidates.search(queries, folded, BruteForce(folded.rows[1:]))
    with pytest.raises(ValueError, match=r"overfetch: expected a number of at least 1, got 0\.5"):
        candidates.search(queries, folded, engine, overfetch=0.5)
    with pytest.raises(TypeError, match="k: expected a whole number"):
        candidates.search(queries, folded, engine, 1.5)
    with pytest.raises(ValueError, match="expected vectors of the same length, got 23 and 24"):
        candidates.search(queries[:, 1:], folded, engine)
    with pytest.raises(ValueError, match=r"vectors: .*NaN or infinity in row 3"):
        candidates.fold(np.where(np.arange(100)[:, None] == 3, np.nan, X))
    queries[2, 5] = np.inf
    with pytest.raises(ValueError, match=r"queries: .*NaN or infinity in row 2"):
        candidates.search(queries, folded, engine)


@pytest.mark.parametrize(
    ("proposed", "message"),
    [
        (np.zeros((40, 2), int), r"shape \(40, 15\), .* got shape \(40, 2\) of int64"),
        (np.zeros((40, 15)), r"got shape \(40, 15\) of float64"),
        (np.full((40, 15), 100), "expected row numbers from -1 to 99, got 100"),
    ],
)
def test_bad_proposals(proposed, message):
    queries, X = data(gaussian, n=100)
    engine = BruteForce(X)
    engine.propose = lambda queries, count: proposed
    with pytest.raises(ValueError, match=message):
        candidates.search(queries, X, engine)


def test_vectors_that_do_not_resemble_each_other_are_not_folded():
    _, X = data(crowded, n=500)
    X[::4] = np.eye(WIDTH)[np.arange(125) % WIDTH]
    with pytest.raises(ValueError, match=r"125 of 500 rows that have more than 0\.8 beside 1"):
        candidates.fold(X, coordinates=1)


def test_indices_that_compare_otherwise_are_refused():
    faiss = pytest.importorskip("faiss")
    with pytest.raises(ValueError, match="index: expected one that compares by the inner product"):
        engines.FaissEngine(faiss.IndexFlatL2(4))
    usearch = pytest.importorskip("usearch.index")
    with pytest.raises(ValueError, match="index: expected one that compares by the inner product"):
        engines.UsearchEngine(usearch.Index(ndim=4, metric="l2sq"))
    with pytest.raises(ValueError, match="exact: expected an index of float32"):
        engines.UsearchEngine(usearch.Index(ndim=4, metric="ip", dtype="bf16"), exact=True)


@pytest.mark.parametrize(
    ("module", "build"),
    [
        ("faiss", engines.FaissEngine.build),
        ("usearch", engines.UsearchEngine.build),
        ("usearch", engines.UsearchEngine.build_recos),
    ],
)
def test_a_missing_extra_says_how_to_install_it(monkeypatch, module, build):
    for name in list(sys.modules):
        if name.partition(".")[0] == module:
            monkeypatch.delitem(sys.modules, name)
    finder = type("Finder", (), {"find_spec": staticmethod(lambda name, *_: refuse(name, module))})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'recos\[{module}\]'"):
        build(np.eye(4, dtype=np.float32))


def refuse(name, module):
    if name == module:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

"""Search as a GPU does it: in plain PyTorch here, with kernels where there is a CUDA device."""

import numpy as np
import pytest

import recos
from recos import _device
from recos._device import kept
from recos.metrics import METRICS

torch = pytest.importorskip("torch")

WIDTH = 64
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def make_rows(kind, count, rng):
    shape = count, WIDTH
    if kind == "clustered":
        centres = rng.standard_normal((20, WIDTH))
        return centres[rng.integers(0, 20, count)] + 0.3 * rng.standard_normal(shape)
    if kind == "heavy-tailed":
        return rng.standard_t(1.5, shape)
    if kind == "positive":
        return rng.random(shape)
    if kind == "shifted":
        return rng.standard_normal(shape) + 3 * rng.standard_normal(WIDTH)
    if kind == "tied":
        return rng.integers(-1, 2, shape).astype(float)
    X = rng.standard_normal(shape)
    if kind == "odd":  # constant rows, zeros, and lengths at the ends of the range
        X[::7] = 1
        X[3] = 0
        X[5] *= 1e-35
        X[6] *= 1e33
    return X


KINDS = ["random", "clustered", "heavy-tailed", "positive", "shifted", "tied", "odd"]


@pytest.fixture(params=KINDS)
def data(request, rng):
    X = make_rows(request.param, 2000, rng).astype(np.float32)
    near = X[:20] + 0.1 * rng.standard_normal((20, WIDTH)).astype(np.float32)
    return np.concatenate([near, X[20:30], -X[:5]]), X


def assert_same(found, exact):
    """Compare with one more of the best; rows of equal scores, but for rounding, may differ."""
    scores, indices = (np.asarray(x.cpu()) for x in (found.scores, found.indices))
    k = scores.shape[1]
    np.testing.assert_allclose(scores, exact.scores[:, :k], atol=1e-12)
    steps = np.abs(np.diff(exact.scores, axis=1)) > 1e-12
    apart = steps & np.concatenate([np.ones((len(steps), 1), bool), steps[:, :-1]], axis=1)
    np.testing.assert_array_equal(indices[apart[:, :k]], exact.indices[:, :k][apart[:, :k]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("codes", ["float16", "int8"])
@pytest.mark.parametrize("metric", ["recos", "cos", "decos"])
def test_device_finds_what_the_host_finds(data, metric, codes, device):
    queries, X = data
    exact = recos.topk(queries.astype(np.float64), X.astype(np.float64), 11, metric=metric)
    rows = torch.from_numpy(X).to(device)
    corpus = _device.make_corpus(METRICS[metric], rows, codes=codes)
    found = _device.search(
        METRICS[metric], torch.from_numpy(queries).to(device), corpus, 10, memory=2**28
    )
    assert_same(found, exact)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_rows_are_searched_as_they_lie(rng, dtype, device):
    X = torch.from_numpy(rng.standard_normal((2000, WIDTH))).to(getattr(torch, dtype))
    corpus = _device.make_corpus(METRICS["recos"], X.to(device))
    queries = torch.from_numpy(rng.standard_normal((30, WIDTH)).astype(np.float32))
    found = _device.search(METRICS["recos"], queries.to(device), corpus, 5, memory=2**28)
    exact = recos.topk(queries.double().numpy(), X.double().numpy(), 5)
    assert corpus.codes is None
    np.testing.assert_array_equal(found.indices.cpu().numpy(), exact.indices)
    np.testing.assert_allclose(found.scores.cpu().numpy(), exact.scores, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_most_rows_are_ruled_out(rng, device):
    X = torch.from_numpy(rng.standard_normal((20000, WIDTH)).astype(np.float32)).to(device)
    corpus = _device.make_corpus(METRICS["recos"], X, codes="int8")
    found = _device.search(METRICS["recos"], X[:50] * 2, corpus, 10, memory=2**28)
    assert found.indices[:, 0].tolist() == list(range(50))
    assert float(found.scored.double().mean()) < 40


@pytest.mark.parametrize("device", DEVICES)
def test_more_candidates_than_there_is_room_for(rng, device):
    X = rng.standard_normal((3000, WIDTH)).astype(np.float32)
    X[500:2500] = X[0]  # ties: all of them are candidates
    rows = torch.from_numpy(X).to(device)
    corpus = _device.make_corpus(METRICS["recos"], rows)
    found = _device.search(METRICS["recos"], rows[:40], corpus, 10, memory=2**20)
    exact = recos.topk(X[:40].astype(np.float64), X.astype(np.float64), 10)
    np.testing.assert_array_equal(found.indices.cpu().numpy(), exact.indices)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("codes", ["float16", "int8"])
def test_filters_and_own_rows_are_left_out(rng, codes, device):
    X = rng.standard_normal((2000, WIDTH)).astype(np.float32)
    allowed = rng.random(2000) < 0.5
    rows = torch.from_numpy(X).to(device)
    corpus = _device.make_corpus(METRICS["recos"], rows, codes=codes)
    found = _device.search(
        METRICS["recos"], rows, corpus, 5, torch.arange(2000, device=device),
        torch.from_numpy(allowed).to(device), memory=2**28,
    )  # fmt: skip
    wide = X.astype(np.float64)
    exact = recos.topk(wide, wide, 5, where=allowed, exclude_self=True)
    np.testing.assert_array_equal(found.indices.cpu().numpy(), exact.indices)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("threshold", [0.3, -0.2])
def test_range_finds_what_the_host_finds(data, threshold, device):
    queries, X = data[0][:20], data[1][:500]
    exact = recos.range_search(queries.astype(np.float64), X.astype(np.float64), threshold)
    i, j, scores = _device.reaching_rows(
        METRICS["recos"], *(torch.from_numpy(x).to(device) for x in (queries, X)), threshold,
        memory=2**28, name="corpus",
    )  # fmt: skip
    found = dict(zip(zip(i.tolist(), j.tolist(), strict=True), scores.tolist(), strict=True))
    expected = dict(
        zip(
            zip(exact.i.tolist(), exact.j.tolist(), strict=True), exact.scores.tolist(), strict=True
        )
    )
    edge = found.keys() ^ expected.keys()
    assert all(abs({**found, **expected}[pair] - threshold) < 1e-12 for pair in edge)
    for pair in found.keys() & expected.keys():
        assert found[pair] == pytest.approx(expected[pair], abs=1e-12)


def test_rows_that_are_not_finite_are_named():
    X = torch.ones((200, 8))
    X[7, 3] = torch.nan
    with pytest.raises(ValueError, match=r"corpus: expected finite numbers, .* in row 7"):
        _device.make_corpus(METRICS["recos"], X)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("width", [1, 7, 50, 300, 384, 768, 1000, 2048])
def test_kernels_sum_what_plain_torch_sums(rng, width, dtype):
    from recos import _exact
    from recos._kernels import warps

    u, v = (
        torch.from_numpy(rng.standard_normal((100, width))).to(getattr(torch, dtype))
        for _ in range(2)
    )
    found = warps.score(u.cuda(), v.cuda()).cpu()
    torch.testing.assert_close(found, _exact.sums(u, v), rtol=1e-12, atol=1e-12)
    which = torch.from_numpy(rng.integers(0, 100, (2, 500)))
    found = warps.score(u.cuda(), v.cuda(), *which.cuda()).cpu()
    torch.testing.assert_close(found, _exact.sums(u, v, *which), rtol=1e-12, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", list(METRICS))
def test_public_functions_stay_on_the_device(rng, metric):
    X = rng.standard_normal((3000, 96)).astype(np.float32)
    wide, rows = X.astype(np.float64), torch.from_numpy(X).cuda()
    pairs = recos.paired(rows[:1000], rows[1000:2000], metric=metric)
    assert pairs.is_cuda
    np.testing.assert_allclose(
        pairs.cpu(), recos.paired(wide[:1000], wide[1000:2000], metric=metric), atol=2e-7
    )
    found = recos.topk(rows[:100], rows, 7, metric=metric, exclude_self=False, memory="2MiB")
    exact = recos.topk(wide[:100], wide, 7, metric=metric)
    assert found.scores.is_cuda
    assert found.indices.is_cuda
    np.testing.assert_array_equal(found.indices.cpu(), exact.indices)
    again = recos.rerank(rows[:100], rows, candidates=found.indices.flip(1), k=5, metric=metric)
    np.testing.assert_array_equal(again.indices.cpu(), exact.indices[:, :5])
    mined = recos.mine_pairs(rows, k=2, max_pairs=50, metric=metric)
    assert mined.i.is_cuda
    expected = recos.mine_pairs(wide, k=2, max_pairs=50, metric=metric)
    np.testing.assert_array_equal(mined.j.cpu(), expected.j)
    near = recos.range_search(rows[:50], rows, 0.3, metric=metric)
    expected = recos.range_search(wide[:50], wide, 0.3, metric=metric)
    np.testing.assert_array_equal(near.j.cpu(), expected.j)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_an_index_on_a_device(rng, dtype, tmp_path):
    X = torch.from_numpy(rng.standard_normal((3000, 96)).astype(np.float32)).to(
        getattr(torch, dtype)
    )
    names = [f"row {i}" for i in range(3000)]
    index = recos.Index(X[:2000], ids=names[:2000], dtype=dtype, device="cuda")
    index.add(X[2000:].cuda(), ids=names[2000:])
    index.remove(names[::3])
    host = recos.Index(X.float().numpy(), ids=names)
    host.remove(names[::3])
    queries = rng.standard_normal((40, 96)).astype(np.float32)
    exact = host.search(queries, 6)
    for found in (index.search(queries, 6), index.search(torch.from_numpy(queries).cuda(), 6)):
        np.testing.assert_array_equal(found.indices, exact.indices)
    index.save(tmp_path / "index")
    index.verify()
    for loaded in (
        recos.Index.load(tmp_path / "index"),
        recos.Index.load(tmp_path / "index", device="cuda"),
    ):
        np.testing.assert_array_equal(loaded.search(queries, 6).indices, exact.indices)
    some = names[1:1000:3]
    np.testing.assert_array_equal(
        index.search(queries, 6, where=some).indices, host.search(queries, 6, where=some).indices
    )


@pytest.mark.gpu
def test_rows_that_do_not_fit_stay_in_host_memory(rng, monkeypatch):
    monkeypatch.setattr(kept, "_KEPT", 0.0)
    X = rng.standard_normal((3000, 96)).astype(np.float32)
    index = recos.Index(X, device="cuda")
    assert not index._segments[0].corpus.rows.is_cuda
    found = index.search(X[:50], 5, memory="2MiB")
    np.testing.assert_array_equal(found.indices, recos.topk(X[:50], X, 5).indices)


@pytest.mark.gpu
def test_half_precision_autocast_changes_no_ranking(rng):
    X = torch.from_numpy(rng.standard_normal((3000, 96)).astype(np.float32)).cuda()
    plain, pairs = recos.topk(X[:50], X, 5), recos.pairwise(X[:50], X)
    with torch.autocast("cuda", torch.bfloat16):
        assert torch.equal(recos.topk(X[:50], X, 5).indices, plain.indices)
        assert torch.equal(recos.pairwise(X[:50], X), pairs)


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="device: expected a CUDA device"):
        recos.Index(np.ones((3, 4)), device="cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("width", [64, 101, 768])
def test_the_gradient_of_the_kernel_is_that_of_float64(rng, width):
    X, Y = (torch.from_numpy(rng.standard_normal((n, width))).cuda() for n in (70, 90))
    weight = torch.from_numpy(rng.standard_normal((70, 90))).cuda()
    found = []
    for dtype in (torch.float64, torch.float32):
        x, y = (x.to(dtype, copy=True).requires_grad_() for x in (X, 1e-3 * Y))
        scores = recos.pairwise(x, y)
        (scores * weight.to(dtype)).sum().backward()
        found.append((scores.detach().double(), x.grad.double(), y.grad.double() * 1e-3))
    for wide, narrow in zip(*found, strict=True):
        torch.testing.assert_close(narrow, wide, rtol=1e-4, atol=2e-5)


# array-api-compat caches what it knows of a class; PyTorch says that it looks through the cache.
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a .functools.lru_cache")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("function", ["pairwise", "paired"])
def test_training_is_traced_without_a_graph_break(rng, function, dtype):
    X = torch.from_numpy(rng.standard_normal((20, 64))).to(getattr(torch, dtype)).requires_grad_()

    def loss(x):
        return getattr(recos, function)(x, x.flip(0)).float().sum()

    traced = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert traced(X).item() == pytest.approx(loss(X).item(), rel=1e-2, abs=1e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [64, 301, 768])
def test_all_pairs_by_the_kernel_are_those_of_float64(rng, width):
    X, Y = (
        torch.from_numpy(rng.standard_normal((n, width)).astype(np.float32)).cuda()
        for n in (300, 400)
    )
    X[:50] = Y[:50]
    Y[60], X[70] = 1.0, 0.0
    exact = recos.pairwise(X.double(), Y.double())
    torch.testing.assert_close(recos.pairwise(X, Y).double(), exact, rtol=0, atol=3e-6)

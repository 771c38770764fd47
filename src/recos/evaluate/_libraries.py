"""Encoders that other libraries load: sentence-transformers, model2vec, gensim."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recos.evaluate._extras import load
from recos.evaluate._hashes import file_hash

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


class SentenceTransformerEncoder:
    """A model of sentence-transformers: transformers with any pooling, CLIP, word averages.

    Parameters
    ----------
    name : str
        What the report calls it.
    source : str
        A folder or the id of a model on the hub.
    facts : dict
        What is known of it.
    device : str or None
        Such as ``"cpu"`` or ``"cuda"``; by default the library chooses.
    offline : bool
        Whether to ask no network.
    """

    def __init__(
        self,
        name: str,
        source: str,
        facts: dict[str, Any],
        device: str | None,
        *,
        offline: bool = False,
    ) -> None:
        library = load("sentence_transformers", "encoders")
        _check_device(device)
        self.name = name
        self.model = library.SentenceTransformer(source, device=device, local_files_only=offline)
        modes = [str(part.pooling_mode) for part in self.model if hasattr(part, "pooling_mode")]
        found = {
            "checkpoint": source,
            "pooling": ", ".join(modes) or "the model's own",
            "dimension": self.model.get_embedding_dimension(),
        }
        self.facts = found | facts
        self.identity = _hash_of_model(self.model)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""
        rows = self.model.encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(rows, np.float32)


def _check_device(device: str | None) -> None:
    """Raise an error where PyTorch has no such device."""
    if device is None:
        return
    try:
        load("torch", "encoders").empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where it was built without CUDA
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"device: expected one that PyTorch has here, such as cpu, got {device!r} ({reason})"
        ) from error


def _hash_of_model(model: Any) -> str:
    """Return a hash of the modules, the tokenizer and the weights, wherever they came from."""
    settings = [part.get_config_dict() for part in model if hasattr(part, "get_config_dict")]
    settings += [model.max_seq_length, model.default_prompt_name, model.prompts]
    total = hashlib.sha256((repr(model) + repr(settings)).encode())
    total.update(_text_of_tokenizer(model.tokenizer).encode())
    for key, values in model.state_dict().items():
        total.update(key.encode())
        numbers = values.detach().cpu().contiguous().reshape(-1)
        total.update(numbers.view(load("torch", "encoders").uint8).numpy())
    return total.hexdigest()


def _text_of_tokenizer(tokenizer: Any) -> str:
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # that of a processor, such as CLIP's
    if hasattr(tokenizer, "backend_tokenizer"):
        return str(tokenizer.backend_tokenizer.to_str())
    left_out = sorted(getattr(tokenizer, "stop_words", ()))
    return repr((getattr(tokenizer, "do_lower_case", None), left_out, list(tokenizer.get_vocab())))


class Model2VecEncoder:
    """A static model of model2vec.

    Parameters
    ----------
    name : str
        What the report calls it.
    source : str
        A folder or the id of a model on the hub.
    facts : dict
        What is known of it.
    """

    def __init__(self, name: str, source: str, facts: dict[str, Any]) -> None:
        library = load("model2vec", "encoders")
        self.name = name
        self.model = library.StaticModel.from_pretrained(source, force_download=False)
        found = {"checkpoint": source, "pooling": "mean", "dimension": int(self.model.dim)}
        self.facts = found | facts
        parts = [self.model.embedding, self.model.weights, self.model.token_mapping]
        total = hashlib.sha256(self.model.tokenizer.to_str().encode())
        total.update(repr((self.model.normalize, self.model.max_length)).encode())
        for part in parts:
            total.update(b"none" if part is None else part.tobytes())
        self.identity = total.hexdigest()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""
        return np.asarray(self.model.encode(list(texts)), np.float32)


class WordVectors:
    """Means of word vectors in the word2vec format, binary or text, with or without a header.

    A word counts as it is written, else in lower case, else not at all; a text without a known word
    becomes zeros.

    Parameters
    ----------
    name : str
        What the report calls it.
    path : pathlib.Path
        ``.bin``, ``.vec`` or ``.txt``, perhaps with ``.gz``.
    facts : dict
        What is known of it.
    """

    def __init__(self, name: str, path: Path, facts: dict[str, Any]) -> None:
        models = load("gensim.models", "encoders")
        binary = ".bin" in path.suffixes
        self.name = name
        try:
            self.words = models.KeyedVectors.load_word2vec_format(
                str(path), binary=binary, no_header=not binary and not _has_header(path)
            )
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{path}: expected word vectors in the word2vec format ({error})"
            ) from error
        found = {
            "checkpoint": path.name,
            "pooling": "mean of the vectors of the words",
            "dimension": self.words.vector_size,
        }
        self.facts = found | facts
        self.identity = file_hash(path)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""
        rows = np.zeros((len(texts), self.words.vector_size), np.float32)
        place = self.words.key_to_index
        for row, text in zip(rows, texts, strict=True):
            found = [place.get(word, place.get(word.lower())) for word in _WORD.findall(text)]
            known = [at for at in found if at is not None]
            if known:
                row[:] = self.words.vectors[known].mean(axis=0)
        return rows


def _has_header(path: Path) -> bool:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        return len(file.readline().split()) == 2

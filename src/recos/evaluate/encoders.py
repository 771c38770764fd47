"""Encoders: what makes vectors of texts, found by name, by path or as a function.

The libraries that load them are in ``_libraries``, the models of the paper in ``_models``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from recos._arrays import to_numpy
from recos.evaluate import ready
from recos.evaluate._extras import hub_answers, remedied
from recos.evaluate._libraries import Model2VecEncoder, SentenceTransformerEncoder, WordVectors
from recos.evaluate._models import PAPER, Model, find_model
from recos.evaluate.static import StaticEncoder

_WORD_FILES = (".bin", ".bin.gz", ".vec", ".vec.gz", ".txt", ".txt.gz")


class Encoder(Protocol):
    """What makes vectors of texts.

    Attributes
    ----------
    name : str
        What the report calls it.
    facts : dict
        checkpoint, pooling, dimension, licence and size, as far as they are known.
    identity : str or None
        Tells it from every other model, for the cache; None where that cannot be known, and its
        vectors are not cached.
    """

    @property
    def name(self) -> str:
        """What the report calls it."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of it."""

    @property
    def identity(self) -> str | None:
        """What tells it from every other model."""

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        """Return one row for each text, float32, shape (n, d)."""


class FunctionEncoder:
    """A function of a list of texts.

    Parameters
    ----------
    function : callable
        Returns a matrix with one row for each text. If it has an attribute ``cache_key``, a text
        that you change whenever its vectors change, they are cached under it.
    name : str
        What the report calls it.
    """

    def __init__(self, function: Callable[[list[str]], Any], name: str) -> None:
        self.function, self.name = function, name
        key = getattr(function, "cache_key", None)
        self.identity = None if key is None else f"function {name} {key}"
        self.facts: dict[str, Any] = {"checkpoint": "a function of the user"}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return what the function does, as an array of NumPy."""
        rows = self.function(list(texts))
        return to_numpy(rows) if hasattr(rows, "dtype") else np.asarray(rows)


def default_encoder() -> StaticEncoder:
    """Return the small encoder that comes with the package, which needs NumPy alone.

    Examples
    --------
    >>> default_encoder().encode(["A small cat."]).shape
    (1, 96)
    """
    return StaticEncoder.packaged()


def find_encoder(
    encoder: str | Path | Callable[[list[str]], Any] | Encoder, *, device: str | None = None
) -> Encoder:
    """Find an encoder.

    Parameters
    ----------
    encoder : str, path, callable or Encoder
        ``"default"``; a model of the paper by its name, such as ``"SGPT"``; ready embeddings
        (``.npy``, ``.parquet``, ``.safetensors``); word vectors in the word2vec format (``.bin``,
        ``.vec``, ``.txt``); a folder or the hub's id of a model of sentence-transformers or
        model2vec; a function of a list of texts; an object with such a method ``encode``. Names
        are looked up in the folder ``RECOS_MODELS`` before the hub.
    device : str, optional
        Where sentence-transformers computes, such as ``"cuda"``.

    Returns
    -------
    Encoder
        Loaded.

    Examples
    --------
    >>> def letters(texts):
    ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
    >>> find_encoder(letters).encode(["a cat"])
    array([[2, 0, 0, 0, 0]])
    """
    if not isinstance(encoder, (str, Path)):
        return _wrapped(encoder)
    name = str(encoder)
    if name.lower() in ("default", "recos-static"):
        return default_encoder()
    found = find_model(name)
    if found is not None:
        return _load_published(*found, device)
    path = Path(name).expanduser()
    if not path.exists():
        path = _in_models_folder(path.name) or path
    if path.exists():
        return _load_path(path, path.name if path.name not in ("", "..") else path.resolve().name,
                          {}, device)  # fmt: skip
    if name.startswith((".", "/", "~")) or name.endswith((*ready.SUFFIXES, *_WORD_FILES)):
        raise FileNotFoundError(f"{name}: expected a file or folder, found none; check the path")
    return _load_from_hub(name, name, {}, device)


def _wrapped(encoder: Any) -> Encoder:
    method = getattr(encoder, "encode", None)
    if all(hasattr(encoder, part) for part in ("name", "facts", "identity")) and callable(method):
        given: Encoder = encoder
        return given
    if method is None and callable(encoder):
        return FunctionEncoder(encoder, getattr(encoder, "__name__", type(encoder).__name__))
    if callable(method):
        return FunctionEncoder(method, type(encoder).__name__)
    raise TypeError(
        "encoder: expected a name, a path, a function of a list of texts or an object with a "
        f"method encode, got {type(encoder).__name__}"
    )


def _in_models_folder(*names: str) -> Path | None:
    """Return the first of some files or folders that ``RECOS_MODELS`` holds."""
    folder = os.environ.get("RECOS_MODELS")
    places = [Path(folder, name) for name in names] if folder else []
    return next((place for place in places if place.exists()), None)


def _load_published(name: str, model: Model, device: str | None) -> Encoder:
    """Load a model of the paper."""
    facts = {key: value for key, value in model._asdict().items() if value}
    if model.repository:
        path = _in_models_folder(model.repository.rpartition("/")[2])
        if path is not None:
            return _load_path(path, name, facts, device)
        return _load_from_hub(model.repository, name, facts, device)
    path = _in_models_folder(*(model.checkpoint + suffix for suffix in _WORD_FILES))
    if path is None:
        raise FileNotFoundError(
            f"{name}: expected its word vectors in the folder that RECOS_MODELS names, found none; "
            f"download {model.checkpoint} ({model.size}) from {model.source}, unpack a .zip, and "
            f"put it there as {model.checkpoint} with its ending, one of {', '.join(_WORD_FILES)}"
        )
    return WordVectors(name, path, facts)


def _load_path(path: Path, name: str, facts: dict[str, Any], device: str | None) -> Encoder:
    if path.is_dir():
        if _is_model2vec(path):
            return Model2VecEncoder(name, str(path), facts)
        return SentenceTransformerEncoder(name, str(path), facts, device)
    if path.suffix in ready.SUFFIXES:
        return ready.ReadyVectors(path)
    if path.name.endswith(_WORD_FILES):
        return WordVectors(name, path, facts)
    raise ValueError(
        f"{path}: expected a folder of a model, embeddings ({', '.join(ready.SUFFIXES)}) or word "
        f"vectors ({', '.join(_WORD_FILES)}), by its name"
    )


def _is_model2vec(folder: Path) -> bool:
    """Whether a folder has one table of vectors, which model2vec reads without PyTorch."""
    modules = folder / "modules.json"
    kinds = [part["type"] for part in json.loads(modules.read_bytes())] if modules.exists() else []
    static = bool(kinds) and kinds[0].endswith("StaticEmbedding")
    return static and (folder / "model.safetensors").is_file()


def _load_from_hub(
    repository: str, name: str, facts: dict[str, Any], device: str | None
) -> Encoder:
    """Load a model by its id, from the hub's cache or over the network."""
    page = repository if "/" in repository else f"sentence-transformers/{repository}"
    size = f" ({facts['size']})" if "size" in facts else ""
    remedy = (
        f"Where there is a network, download https://huggingface.co/{page}{size}; give the path of "
        f"its folder, or put it into the folder that RECOS_MODELS names, as "
        f"{repository.rpartition('/')[2]}. Names that are known: default, which needs no network, "
        f"and those of the paper, {', '.join(PAPER)}"
    )
    with remedied(repository, remedy):
        if repository.startswith("minishlab/"):
            return Model2VecEncoder(name, repository, facts)
        offline = not hub_answers()
        return SentenceTransformerEncoder(name, repository, facts, device, offline=offline)

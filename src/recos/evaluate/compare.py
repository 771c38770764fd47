"""The runner: encoders, tasks and variants in, a `Comparison` out; what was finished is kept."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import recos
from recos._blocks import Progress
from recos.diagnosis import diagnose
from recos.evaluate.cache import embed
from recos.evaluate.encoders import Encoder, default_encoder, find_encoder
from recos.evaluate.ready import ReadyVectors
from recos.evaluate.results import SCHEMA, Cell, Comparison, plain, read_cell, write
from recos.evaluate.scoring import MEASURES, Plan, adjusted, score, texts_of
from recos.evaluate.statistics import across
from recos.evaluate.tasks import Retrieval, Task, load_tasks
from recos.evaluate.variants import ALIASES, Transformed, Variant, find_variants

_POINTS = 40_000  # of all scatter plots together, and at most this many of each
_POINTS_EACH = 800


class Corpus(NamedTuple):
    """The texts that transforms learn from, without those of the tasks."""

    name: str
    texts: list[str]
    left_out: int


def compare(
    encoders: Any = None,
    tasks: Any = "default",
    *,
    variants: str | Iterable[str] = "default",
    baseline: str = "cos",
    corpus: str | Path | None = None,
    device: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    seed: int = 0,
    resamples: int = 2000,
    progress: bool | None = None,
) -> Comparison:
    """Compare similarities on embeddings and tasks, and test the differences.

    Parameters
    ----------
    encoders : str, path, callable, or a sequence of them
        See `recos.evaluate.encoders.find_encoder`; by default the small one of the package.
    tasks : str, path, or a sequence of them
        See `recos.evaluate.tasks.load_tasks`, or tasks; by default the pairs of the package.
    variants : str or iterable of str
        See `recos.evaluate.variants.find_variants`.
    baseline : str
        The variant that the others are compared with.
    corpus : path, optional
        A text file, one text a line, that transforms learn from. By default the training sentences
        of STS-B where ``RECOS_DATA`` has them, else sentences of the package; texts that the tasks
        hold are left out.
    device : str, optional
        Where encoders run, such as ``"cuda"``.
    out : path, optional
        A folder that keeps embeddings and finished scores, so that a killed run can go on.
    resume : bool
        Whether to take up the scores that an earlier run into ``out`` finished.
    seed : int
        Of the bootstraps.
    resamples : int
        How many each bootstrap draws.
    progress : bool, optional
        Whether to show progress; by default on a terminal, once it takes more than two seconds.

    Returns
    -------
    Comparison
        What `recos.evaluate.report.write_report` makes files of.

    Examples
    --------
    >>> from recos.evaluate.compare import compare
    >>> found = compare(variants=["cos", "recos"], resamples=200)
    >>> found.scores("cos").shape  # encoders, tasks
    (1, 1)
    """
    if resume and out is None:
        raise ValueError("resume: expected out, the folder of the earlier run, got None")
    chosen = find_variants(variants)
    if baseline not in [variant.name for variant in chosen]:
        chosen = [*find_variants([baseline]), *chosen]
    if len(chosen) < 2:
        raise ValueError(f"variants: expected at least one beside {baseline}, got none")
    plan = Plan(chosen, baseline, resamples, seed)
    read = _tasks(tasks)
    learnt = _corpus(corpus, read)
    models = [default_encoder() if one is None else find_encoder(one, device=device)
              for one in _listed(encoders)]  # fmt: skip
    _check_names([model.name for model in models], "encoders")
    cells: list[Cell] = []
    sample: list[dict[str, Any]] = []
    described = []
    kept = _Kept(out, resume)
    steps = Progress(len(models) * len(read), "recos compare", progress)
    for model in models:
        rows, source = _learnt_by(model, learnt, read, chosen, kept.embeddings, progress)
        transformed = Transformed(rows)
        described.append(_describe(model, rows, source))
        for task in read:
            key = _key(model, task, plan, rows)
            found = kept.read(key)
            if found is None:
                found = _score(model, task, transformed, plan, kept.embeddings, progress)
                kept.write(key, found)
            cells += found[0]
            sample += found[1]
            steps.advance()
    settings = {
        "variants": [variant.name for variant in chosen],
        "baseline": baseline,
        "seed": seed,
        "resamples": resamples,
        "confidence": 0.95,
        "corpus": {"name": learnt.name, "texts": len(learnt.texts), "left_out": learnt.left_out},
        "aliases": {v.name: ALIASES[v.name] for v in chosen if v.name in ALIASES},
        "device": device,
    }
    comparison = Comparison(
        settings=settings,
        encoders=described,
        tasks=[_task_facts(task) for task in read],
        cells=adjusted(cells),
        sample=_fewer(sample),
        made=_made(encoders, tasks, corpus, settings),
    )
    comparison.across.update(_across(comparison))
    return comparison


# --- What is compared ----------------------------------------------------------------------------


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _tasks(given: Any) -> list[Task]:
    tasks: list[Task] = []
    for one in _listed(given):
        tasks += load_tasks([one]) if isinstance(one, (str, Path)) else [one]
    _check_names([task.name for task in tasks], "tasks")
    return tasks


def _check_names(names: Sequence[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        raise ValueError(
            f"{what}: expected one or more of different names, got "
            f"{f'{twice[0]!r} twice' if twice else 'none'}"
        )


def _corpus(given: str | Path | None, tasks: Sequence[Task]) -> Corpus:
    """Return the texts to learn from, without those that the tasks hold."""
    if given is not None:
        path = Path(given)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected a text file, one text a line, found none")
        name, texts = path.name, path.read_text(encoding="utf-8").splitlines()
    elif (path := Path(os.environ.get("RECOS_DATA", ""), "sts", "stsb-train.tsv")).is_file():
        name = "the training sentences of STS-B"
        texts = texts_of(load_tasks([path])[0])
    else:
        name = "the corpus of the package"
        packaged = resources.files("recos.evaluate").joinpath("data", "sentences.txt")
        texts = packaged.read_text(encoding="utf-8").splitlines()
    different = dict.fromkeys(text for text in texts if text.strip())
    tested = {text for task in tasks for text in texts_of(task)}
    kept = [text for text in different if text not in tested]
    if len(kept) < 2:
        raise ValueError(
            f"corpus: expected 2 or more texts that no task holds, got {len(kept)} in {name}; pass "
            "a file of other texts such as those to be compared"
        )
    return Corpus(name, kept, len(different) - len(kept))


def _learnt_by(
    model: Encoder,
    corpus: Corpus,
    tasks: Sequence[Task],
    variants: Sequence[Variant],
    cache: Path | None,
    progress: bool | None,
) -> tuple[np.ndarray | None, str | None]:
    """Return the rows that transforms learn from, and where they are from if not from the corpus.

    Embeddings that are there already may lack those of the corpus: then it is their other rows.
    """
    place = model.place if isinstance(model, ReadyVectors) else None
    if not isinstance(model, ReadyVectors) or (place and all(x in place for x in corpus.texts)):
        return embed(model, corpus.texts, cache=cache, progress=progress), None
    tested = {text for task in tasks for text in texts_of(task)}
    own = [text for text in place or () if text not in tested]
    if len(own) > 1:
        return model.encode(own), f"{len(own):,} rows of {model.path.name} that no task holds"
    learning = [variant.name for variant in variants if variant.needs_corpus]
    if learning:
        raise ValueError(
            f"{model.path}: expected rows of texts that no task holds, for {learning[0]} to learn "
            f"from, found none; add some, with all texts in {model.path.stem}.txt beside it, or "
            "choose --variants that learn nothing, such as cos,recos,decos"
        )
    return None, None


def _score(
    model: Encoder,
    task: Task,
    transformed: Transformed,
    plan: Plan,
    cache: Path | None,
    progress: bool | None,
) -> tuple[list[Cell], list[dict[str, Any]]]:
    """Return the cells of a setting, and the points of its scatter plot."""
    rows = embed(model, texts_of(task), cache=cache, progress=progress)
    cells, similarities = score(task, rows, transformed, model.name, plan)
    if similarities is None or isinstance(task, Retrieval):
        return cells, []
    names = [variant.name for variant in plan.variants]
    others = [name for name in names if name != plan.baseline]
    other = "recos" if "recos" in others else others[0]
    picked = np.random.default_rng(plan.seed).permutation(len(task.scores))[:_POINTS_EACH]
    x, y = (np.round(similarities[names.index(name), picked], 5) for name in (plan.baseline, other))
    points = {"encoder": model.name, "task": task.name, "names": [plan.baseline, other],
              "baseline": x.tolist(), "other": y.tolist(),
              "human": task.scores[picked].tolist()}  # fmt: skip
    return cells, [points]


def _fewer(sample: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the scatter plots with fewer points each where there are many, to keep files small."""
    most = _POINTS // max(1, len(sample))
    return [
        {name: values[:most] if name in ("baseline", "other", "human") else values
         for name, values in one.items()}
        for one in sample
    ]  # fmt: skip


def _across(comparison: Comparison) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the tests over all settings for each variant, of scores times 100."""
    models = [name for name in comparison.encoder_names for _ in comparison.tasks]
    sets = [name for _ in comparison.encoders for name in comparison.task_names]
    if len(models) < 3:
        return {}
    base = 100 * comparison.scores(comparison.baseline).ravel()
    return {
        variant: {
            name: test.to_dict()
            for name, test in across(
                100 * comparison.scores(variant).ravel(), base, models, sets
            ).items()
        }
        for variant in comparison.others
        if np.any(comparison.gains(variant))
    }


# --- What is told of it --------------------------------------------------------------------------


def _describe(model: Encoder, rows: np.ndarray | None, source: str | None) -> dict[str, Any]:
    """Return the facts of an encoder, the shape of its profiles, and what `diagnose` says."""
    if rows is None:
        assert isinstance(model, ReadyVectors)
        rows = np.asarray(model.rows, np.float32)
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    profiles = np.sort(rows / np.where(norms == 0, 1, norms), axis=1)
    places = np.unique(np.linspace(0, rows.shape[1] - 1, 64).round().astype(int))
    low, middle, high = np.round(np.quantile(profiles[:, places], [0.05, 0.5, 0.95], axis=0), 5)
    return {
        "name": model.name,
        "facts": {"dimension": rows.shape[1], **model.facts, "transforms learn from": source},
        "profile": {"low": low.tolist(), "middle": middle.tolist(), "high": high.tolist()},
        "diagnosis": diagnose(rows).to_dict(),
    }


def _task_facts(task: Task) -> dict[str, Any]:
    rows = len(task.queries) if isinstance(task, Retrieval) else len(task.first)
    return {
        "name": task.name,
        "kind": task.kind,
        "measure": MEASURES[task.kind],
        "rows": rows,
        "texts": len(set(texts_of(task))),
        "facts": dict(task.facts),
    }


def _made(encoders: Any, tasks: Any, corpus: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return where and with what this was made, and the command that makes it again."""
    words = ["recos", "compare"]
    words += [_name(one) for one in _listed(encoders) if one is not None]
    for name, values in (("--tasks", _listed(tasks)), ("--variants", settings["variants"])):
        words += [name, ",".join(map(_name, values))]
    words += ["--baseline", settings["baseline"], "--seed", str(settings["seed"])]
    words += ["--resamples", str(settings["resamples"])]
    words += ["--corpus", str(corpus)] if corpus is not None else []
    words += ["--device", settings["device"]] if settings["device"] else []
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": shlex.join(words),
        "recos": recos.__version__,
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
    }


def _name(given: Any) -> str:
    if isinstance(given, (str, Path)):
        return str(given)
    return str(getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__))


# --- What is kept, so that a killed run can go on ------------------------------------------------


class _Kept:
    """The folder of embeddings and of finished settings; without one, nothing is kept."""

    def __init__(self, out: str | Path | None, resume: bool) -> None:
        self.folder = None if out is None else Path(out) / "cache"
        self.resume = resume
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def embeddings(self) -> Path | None:
        """Where blocks of embeddings are kept."""
        return None if self.folder is None else self.folder / "embeddings"

    def read(self, key: str | None) -> tuple[list[Cell], list[dict[str, Any]]] | None:
        """Return what an earlier run found."""
        if not self.resume or self.folder is None or key is None:
            return None
        path = self.folder / f"{key}.json"
        if not path.is_file():
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
        return [read_cell(cell) for cell in content["cells"]], content["sample"]

    def write(self, key: str | None, found: tuple[list[Cell], list[dict[str, Any]]]) -> None:
        """Keep what was found."""
        if self.folder is not None and key is not None:
            content = {"cells": [asdict(cell) for cell in found[0]], "sample": found[1]}
            write(self.folder / f"{key}.json", json.dumps(plain(content)))


def _key(model: Encoder, task: Task, plan: Plan, corpus: np.ndarray | None) -> str | None:
    """Return what stands for all that the scores of a setting depend on."""
    if model.identity is None:
        return None
    parts = [SCHEMA, recos.__version__, model.name, model.identity, task.name, task.kind]
    if isinstance(task, Retrieval):
        parts += [list(task.queries.items()), list(task.corpus.items()), task.qrels]
    else:
        parts += [task.first, task.second, task.scores.tolist(), task.subsets]
    parts += [[v.name for v in plan.variants], plan.baseline, plan.resamples, plan.seed]
    parts.append(None if corpus is None else hashlib.sha256(corpus.tobytes()).hexdigest())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

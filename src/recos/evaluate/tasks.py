"""Tasks: pairs of texts with scores of people, pairs with labels, and retrieval.

A task is looked up in the folder that ``RECOS_DATA`` names, then on the Hugging Face hub, or is a
file or folder of the user's own.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from recos.evaluate._extras import fetch_dataset
from recos.evaluate._hashes import file_hash
from recos.evaluate._records import SUFFIXES, Place, Record, read_records, suffix_of
from recos.evaluate._sets import KNOWN, Known

COLUMNS = ("sentence1", "sentence2", "score")
_OTHER_NAMES = {"text1": "sentence1", "text2": "sentence2", "label": "score"}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of texts with a score each.

    Attributes
    ----------
    name : str
        What the report calls it.
    kind : str
        ``"pairs"`` where all scores are 0 or 1 (pair classification, measured by the average
        precision), else ``"sts"`` (measured by rank correlation).
    first, second : tuple of str
        The texts.
    scores : numpy.ndarray of float64, shape (n,)
        What people say: larger is more similar.
    subsets : tuple of str or None
        The part of the set that each pair belongs to.
    facts : dict
        source, revision, checksum, licence and citation.
    """

    name: str
    kind: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: np.ndarray
    subsets: tuple[str, ...] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Queries, documents, and which documents are relevant.

    Attributes
    ----------
    name : str
        What the report calls it.
    queries, corpus : dict of str to str
        Texts by id. Queries without a relevant document are left out.
    qrels : dict of str to dict of str to int
        The grade of each judged document, by query.
    facts : dict
        source, revision, checksum, licence and citation.
    kind : str
        ``"retrieval"``.
    """

    name: str
    queries: dict[str, str]
    corpus: dict[str, str]
    qrels: dict[str, dict[str, int]]
    facts: dict[str, Any] = field(default_factory=dict)
    kind: str = "retrieval"


Task = Pairs | Retrieval


def load_tasks(names: str | Path | Sequence[str | Path]) -> list[Task]:
    """Read tasks by name or path.

    Parameters
    ----------
    names : str, path, or a sequence of them
        ``"sts"`` (the seven sets), one of them such as ``"STS12"`` or ``"SICK-R"``, ``"default"``,
        a name in the folder ``RECOS_DATA``, a file of pairs, a folder of such files or of a
        retrieval task, or the id of a data set on the hub.

    Returns
    -------
    list of Pairs and Retrieval
        In the order of the names.

    Examples
    --------
    >>> [task] = load_tasks("default")
    >>> task.kind, len(task.first) == len(task.scores)
    ('sts', True)
    """
    if isinstance(names, (str, Path)):
        names = [names]
    tasks = [task for name in names for task in _load(name)]
    if not tasks:
        raise ValueError("tasks: expected at least one, got none; pass names=['sts']")
    return tasks


def default_task() -> Pairs:
    """Return the pairs that come with the package, written and graded for it.

    Examples
    --------
    >>> default_task().facts["licence"]
    'Apache-2.0'
    """
    with resources.as_file(resources.files("recos.evaluate") / "data" / "pairs.tsv") as path:
        task = read_pairs(path, "packaged pairs")
    note = "written and graded by the developers of recos for a first look; not a benchmark"
    return replace(task, facts=task.facts | {"source": note, "licence": "Apache-2.0"})


def _load(name: str | Path) -> list[Task]:
    plain = str(name).lower().replace("-", "")
    if plain == "sts":
        return [task for known in KNOWN for task in _load(known)]
    if plain == "default":
        return [default_task()]
    known = next((key for key in KNOWN if key.lower().replace("-", "") == plain), None)
    if known is not None:
        return [_load_known(known, KNOWN[known])]
    path = Path(name).expanduser()
    if path.exists():
        return _read(path, path.resolve().name.removesuffix(suffix_of(path)))
    found = _in_data_folder(str(name))
    if found is not None:
        return _read(found, str(name))
    if re.fullmatch(r"[\w.-]+/[\w.-]+", str(name)):
        return _load_from_hub(str(name))
    raise ValueError(
        f"tasks: expected 'sts', 'default', one of {', '.join(KNOWN)}, a name in the folder "
        f"RECOS_DATA, a file or folder, or the id of a data set on the hub, got {str(name)!r}"
    )


def _in_data_folder(name: str) -> Path | None:
    """Return the file or folder of a name below ``RECOS_DATA``, if it is there."""
    folder = os.environ.get("RECOS_DATA")
    if not folder:
        return None
    places = [Path(folder, "sts", name + suffix) for suffix in SUFFIXES]
    return next((p for p in [*places, Path(folder, "retrieval", name)] if p.exists()), None)


def _load_known(name: str, known: Known) -> Pairs:
    path, revision = _in_data_folder(known.file), "the file's own"
    source = str(path)
    if path is None:
        source = f"https://huggingface.co/datasets/{known.repository}"
        remedy = (
            f"Where there is a network, download test.jsonl.gz from {source} (revision "
            f"{known.revision}); put it into the folder that RECOS_DATA names, as "
            f"sts/{known.file}.jsonl.gz"
        )
        folder, revision = fetch_dataset(known.repository, known.revision, ["*test*"], remedy)
        path = _test_file(folder, known.repository)
    task = read_pairs(path, name)
    facts = task.facts | {
        "source": source,
        "revision": revision,
        "as_checked": task.facts["checksum"] == known.checksum,
        "licence": known.licence,
        "citation": known.citation,
    }
    return replace(task, facts=facts)


def _load_from_hub(repository: str) -> list[Task]:
    source = f"https://huggingface.co/datasets/{repository}"
    remedy = f"Where there is a network, download {source} and give the path of its folder"
    patterns = ["*test*", "corpus*", "queries*"]
    folder, revision = fetch_dataset(repository, None, patterns, remedy)
    name = repository.rpartition("/")[2]
    retrieval = _file_of(folder, "corpus") is not None
    path = folder if retrieval else _test_file(folder, repository)
    facts = {"source": source, "revision": revision}
    return [replace(task, facts=task.facts | facts) for task in _read(path, name)]


def _test_file(folder: Path, repository: str) -> Path:
    files = [path for path in sorted(folder.rglob("*test*")) if suffix_of(path)]
    if len(files) != 1:
        found = ", ".join(path.name for path in files) or "none"
        raise ValueError(
            f"{repository}: expected one test file ({', '.join(SUFFIXES)}), found {found}; "
            "download the one you want and give its path"
        )
    return files[0]


def _read(path: Path, name: str) -> list[Task]:
    """Read a file of pairs, a folder of such files, or a folder of a retrieval task."""
    if path.is_file():
        return [read_pairs(path, name)]
    if _file_of(path, "corpus") is not None:
        return [read_retrieval(path, name)]
    files = [file for file in sorted(path.iterdir()) if suffix_of(file)]
    if not files:
        raise ValueError(
            f"{path}: expected files of pairs ({', '.join(SUFFIXES)}), or corpus.jsonl, "
            "queries.jsonl and qrels/test.tsv, found neither"
        )
    return [read_pairs(file, file.name.removesuffix(suffix_of(file))) for file in files]


def read_pairs(path: Path, name: str) -> Pairs:
    """Read a file of pairs.

    Its columns are sentence1, sentence2 and score (or text1, text2, label), and perhaps subset;
    without a header they are the first three, in this order.
    """
    if not suffix_of(path):
        raise ValueError(f"{path}: expected one of {', '.join(SUFFIXES)}, by its name")
    rows = [_pair(place, record) for place, record in read_records(path, COLUMNS, _OTHER_NAMES)]
    if len(rows) < 3:
        raise ValueError(f"{path}: expected at least 3 pairs, got {len(rows)}")
    first, second, scores, subsets = zip(*rows, strict=True)
    if len(set(scores)) == 1:
        raise ValueError(
            f"{path}: expected scores that differ, all {len(scores)} are {scores[0]:g}; nothing "
            "can be ranked by them"
        )
    kind = "pairs" if set(scores) == {0.0, 1.0} else "sts"
    named = None if None in subsets else subsets
    facts = {"source": str(path), "checksum": checksum(first, second, scores)}
    return Pairs(name, kind, first, second, np.array(scores), named, facts)


def _pair(place: Place, record: Record) -> tuple[str, str, float, str | None]:
    """Return the texts, the score and the subset of a record."""
    missing = [column for column in COLUMNS if column not in record]
    if missing:
        raise ValueError(
            f"{place}: expected columns {', '.join(COLUMNS)}, {missing[0]} is not among "
            f"{', '.join(record)}"
        )
    texts = record["sentence1"], record["sentence2"]
    for column, text in zip(COLUMNS, texts, strict=False):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{place}: expected a text in {column}, got {text!r}")
    try:
        score = float(record["score"])
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(
            f"{place}: expected a number in score, got {record['score']!r}; if this is a header, "
            f"name its columns {', '.join(COLUMNS)}"
            if place.endswith("line 1")
            else f"{place}: expected a number in score, got {record['score']!r}"
        )
    subset = record.get("subset")
    return *texts, score, subset if subset is None else str(subset)


def checksum(first: Sequence[str], second: Sequence[str], scores: Sequence[float]) -> str:
    """Return the SHA-256 of pairs and scores, whatever their order and the kind of file."""
    rows = zip(first, second, scores, strict=True)
    lines = sorted(f"{float(score)!r}\t{one}\t{two}\n" for one, two, score in rows)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read_retrieval(folder: Path, name: str) -> Retrieval:
    """Read a folder in the layout of BEIR: corpus, queries and qrels/test."""
    corpus, queries, judged = (_part(folder, part) for part in ("corpus", "queries", "qrels/test"))
    documents, texts = _texts(corpus), _texts(queries)
    qrels: dict[str, dict[str, int]] = {}
    for place, record in read_records(judged, ("query-id", "corpus-id", "score")):
        query, document, grade = _judgement(place, record)
        if query not in texts:
            raise ValueError(f"{place}: expected the id of a query in {queries}, got {query!r}")
        if document not in documents:
            raise ValueError(
                f"{place}: expected the id of a document in {corpus}, got {document!r}"
            )
        qrels.setdefault(query, {})[document] = grade
    qrels = {query: grades for query, grades in qrels.items() if max(grades.values()) > 0}
    if not qrels:
        raise ValueError(f"{judged}: expected a relevant document for some query, found none")
    facts = {"source": str(folder), "checksum": file_hash(corpus, queries, judged)}
    return Retrieval(name, {query: texts[query] for query in qrels}, documents, qrels, facts)


def _file_of(folder: Path, part: str) -> Path | None:
    """Return the file of a part of a retrieval task, if it is there."""
    return next((p for suffix in SUFFIXES if (p := folder / (part + suffix)).is_file()), None)


def _part(folder: Path, part: str) -> Path:
    path = _file_of(folder, part)
    if path is None:
        raise ValueError(
            f"{folder}: expected corpus.jsonl, queries.jsonl and qrels/test.tsv, found no {part}"
        )
    return path


def _texts(path: Path) -> dict[str, str]:
    """Return the texts of a file by id: the title, if there is one, before the text."""
    texts: dict[str, str] = {}
    for place, record in read_records(path, ("_id", "text")):
        if "_id" not in record or not isinstance(record.get("text"), str):
            raise ValueError(
                f"{place}: expected _id and text, got {', '.join(record) or 'nothing'}"
            )
        if str(record["_id"]) in texts:
            raise ValueError(f"{place}: expected an _id for each text, got {record['_id']!r} again")
        texts[str(record["_id"])] = f"{record.get('title') or ''} {record['text']}".strip()
    return texts


def _judgement(place: Place, record: Record) -> tuple[str, str, int]:
    try:
        return str(record["query-id"]), str(record["corpus-id"]), int(record["score"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{place}: expected query-id, corpus-id and a whole number as score, got {record}"
        ) from None

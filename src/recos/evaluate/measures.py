"""What retrieval and pair classification are measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from recos.evaluate._extras import load
from recos.evaluate.tasks import Retrieval


def measure_retrieval(
    task: Retrieval, ranked: Mapping[str, Sequence[str]], *, k: int = 10, depth: int = 100
) -> dict[str, np.ndarray]:
    """Measure ranked lists of documents.

    Parameters
    ----------
    task : Retrieval
        Its ``qrels`` say what is relevant.
    ranked : dict of str to sequence of str
        The ids of the best documents for each query, the best first. Lists are better as long as
        ``depth``; a query without a list scores 0.
    k : int
        The places that nDCG and the reciprocal rank look at.
    depth : int
        The places that recall looks at.

    Returns
    -------
    dict of str to numpy.ndarray of float64, shape (queries,)
        ``nDCG@k``, ``R@depth`` and ``RR@k`` of each query, in the order of ``task.queries``. Their
        means are what is reported; the mean of ``RR@k`` is called MRR.

    Examples
    --------
    >>> from recos.evaluate.tasks import Retrieval
    >>> task = Retrieval("two", {"q": "?"}, {"a": "A", "b": "B"}, {"q": {"b": 1}})
    >>> {name: float(values[0]) for name, values in measure_retrieval(task, {"q": "ab"}).items()}
    {'nDCG@10': 0.63, 'R@100': 1.0, 'RR@10': 0.5}
    """
    measures = load("ir_measures")
    wanted = [measures.nDCG @ k, measures.R @ depth, measures.RR @ k]
    # Places instead of similarities: the measures see float32, which would tie close ones.
    runs = {
        query: {document: -float(place) for place, document in enumerate(documents)}
        for query, documents in ranked.items()
    }
    row = {query: number for number, query in enumerate(task.queries)}
    values = {str(measure): np.zeros(len(row)) for measure in wanted}
    for one in measures.iter_calc(wanted, task.qrels, runs):
        values[str(one.measure)][row[one.query_id]] = one.value
    return values


def average_precision(labels: np.ndarray, scores: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    r"""Return what takes weights of pairs to the average precision of scores for labels.

    It is :math:`\sum_t (R_t - R_{t-1}) P_t` over the thresholds :math:`t`, from the highest score
    down, where :math:`P_t` and :math:`R_t` are the precision and the recall of the pairs that reach
    it. Equal scores reach a threshold together, so the order of pairs plays no part.

    Parameters
    ----------
    labels : numpy.ndarray, shape (n,)
        1 for pairs that belong together, else 0.
    scores : numpy.ndarray, shape (n,)
        Larger where a pair is more similar.

    Returns
    -------
    callable
        Takes how often each pair counts, shape (b, n), to numbers between 0 and 1, shape (b,).

    Examples
    --------
    >>> measure = average_precision(np.array([1, 0, 1]), np.array([0.9, 0.8, 0.7]))
    >>> measure(np.ones((1, 3)))
    array([0.83333333])
    """
    if not (labels == 1).any():
        raise ValueError("labels: expected at least one 1, got none")
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)  # equal scores share a place

    def average(weights: np.ndarray) -> np.ndarray:
        drawn = weights[:, order]
        hits = np.cumsum(drawn * labels[order], axis=1)[:, ends]
        seen = np.cumsum(drawn, axis=1)[:, ends]
        new = np.diff(hits, axis=1, prepend=0)
        precision = hits / np.maximum(seen, 1)
        return np.asarray((new * precision).sum(axis=1) / np.maximum(hits[:, -1], 1))

    return average

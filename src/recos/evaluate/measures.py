"""What retrieval and pair classification are measured by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from recos.evaluate.tasks import Retrieval


def measure_retrieval(
    task: Retrieval, ranked: Mapping[str, Sequence[str]], *, k: int = 10, depth: int = 100
) -> dict[str, np.ndarray]:
    """Measure ranked lists of documents (best first), by query id.

    Returns
    -------
    dict of str to numpy.ndarray of float64, shape (queries,)
        ``nDCG@k``, ``R@depth`` and ``RR@k`` of each query, in the order of ``task.queries``;
        their means are the figures that are reported.
    """
    raise NotImplementedError


def average_precision(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the average precision of scores for labels 0 and 1; equal scores share a place."""
    raise NotImplementedError

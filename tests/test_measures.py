"""What retrieval and pair classification are measured by, against other implementations."""

import numpy as np
import pytest

from recos.evaluate.measures import average_precision, measure_retrieval
from recos.evaluate.tasks import Retrieval


def make_task(qrels):
    documents = {document for grades in qrels.values() for document in grades}
    return Retrieval("t", {q: q for q in qrels}, {d: d for d in sorted(documents)}, qrels)


def test_measures_of_a_worked_example():
    pytest.importorskip("ir_measures", reason="needs ir-measures")
    task = make_task({"q": {"a": 3, "b": 2, "c": 0, "d": 1}, "r": {"a": 1}})
    found = measure_retrieval(task, {"q": ["c", "a", "d"], "r": []}, k=2, depth=3)
    ideal = 3 + 2 / np.log2(3)
    assert found["nDCG@2"] == pytest.approx([3 / np.log2(3) / ideal, 0])
    assert found["R@3"] == pytest.approx([2 / 3, 0])
    assert found["RR@2"] == pytest.approx([0.5, 0])


def test_long_lists_keep_their_order():
    # Similarities of 0.9999999 and 0.99999994 are one number in float32: places are not.
    pytest.importorskip("ir_measures", reason="needs ir-measures")
    ranked = [f"d{place:04}" for place in reversed(range(2000))]
    task = make_task({"q": {document: int(document == ranked[1500]) for document in ranked}})
    found = measure_retrieval(task, {"q": ranked}, k=2000, depth=1500)
    assert found["RR@2000"] == pytest.approx([1 / 1501])
    assert found["R@1500"] == [0]


def test_average_precision_is_that_of_scikit_learn(rng):
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    for _ in range(50):
        labels = rng.integers(0, 2, 40)
        labels[0] = 1
        scores = rng.integers(-5, 5, 40) / 7  # many are equal
        expected = metrics.average_precision_score(labels, scores)
        often = rng.integers(0, 3, 40)
        often[0] = 1
        weighted = metrics.average_precision_score(labels, scores, sample_weight=often)
        found = average_precision(labels, scores)(np.array([np.ones(40), often]))
        assert found == pytest.approx([expected, weighted], abs=1e-12)


def test_average_precision_needs_a_positive_label():
    with pytest.raises(ValueError, match="expected at least one 1, got none"):
        average_precision(np.zeros(3), np.arange(3))

"""How well each variant does on one task: scores, their intervals, and gains over a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from recos.evaluate.measures import average_precision, measure_retrieval
from recos.evaluate.results import Cell, Gain
from recos.evaluate.statistics import Test, benjamini_hochberg, correlate
from recos.evaluate.tasks import Pairs, Retrieval, Task
from recos.evaluate.variants import Transformed, Variant

MEASURES = {"sts": "Spearman", "pairs": "average precision", "retrieval": "nDCG@10"}
_DEPTH = 100  # documents that a ranked list holds
_WEIGHTS = 2**22  # numbers of resamples that are drawn at a time


class Plan(NamedTuple):
    """What is asked of each task."""

    variants: Sequence[Variant]
    baseline: str
    resamples: int = 2000
    seed: int = 0

    @property
    def reference(self) -> int:
        """The place of the baseline among the variants."""
        return [variant.name for variant in self.variants].index(self.baseline)


def texts_of(task: Task) -> list[str]:
    """Return the texts of a task, in the order in which `score` wants their vectors."""
    if isinstance(task, Retrieval):
        return [*task.queries.values(), *task.corpus.values()]
    return [*task.first, *task.second]


def score(
    task: Task, rows: np.ndarray, transformed: Transformed, encoder: str, plan: Plan
) -> tuple[list[Cell], np.ndarray | None]:
    """Score all variants on a task.

    Parameters
    ----------
    task : Task
        Pairs, or queries and documents.
    rows : numpy.ndarray, shape (n, d)
        The vectors of `texts_of` the task.
    transformed : Transformed
        What changes them.
    encoder : str
        The name for the cells.
    plan : Plan
        Variants, the baseline, and how to resample.

    Returns
    -------
    list of Cell
        One for each variant; gains are not adjusted yet.
    numpy.ndarray or None, shape (variants, pairs)
        The similarities of the pairs.
    """
    if isinstance(task, Retrieval):
        return _retrieval(task, rows, transformed, encoder, plan), None
    similarities = similarities_of(task, rows, transformed, plan.variants)
    if task.kind == "pairs":
        return _labelled(task, similarities, encoder, plan), similarities
    return _graded(task, similarities, encoder, plan), similarities


def similarities_of(
    task: Pairs, rows: np.ndarray, transformed: Transformed, variants: Sequence[Variant]
) -> np.ndarray:
    """Return the similarity of each pair by each variant, shape (variants, pairs)."""
    n = len(task.first)
    chains = {variant.chain: variant for variant in variants}
    found: dict[str, np.ndarray] = {}
    for chain in chains:
        u, v = transformed.of(chain, rows[:n], rows[n:])
        for variant in variants:
            if variant.chain == chain:
                found[variant.name] = variant.paired(u, v)
    return np.stack([found[variant.name] for variant in variants])


def _graded(task: Pairs, similarities: np.ndarray, encoder: str, plan: Plan) -> list[Cell]:
    """Score by Spearman's correlation with the human scores, all pairs in one."""
    _check_varied(task, similarities, plan)
    draw = partial(correlate, resamples=plan.resamples, seed=plan.seed)
    main = draw(similarities, task.scores)
    others = {"Pearson": draw(similarities, task.scores, kind="pearson")}
    if task.subsets is not None and (total := len(set(task.subsets))) > 1:
        kept, count = _correlated(task, similarities)
        if count:
            x, y, among = similarities[:, kept], task.scores[kept], np.array(task.subsets)[kept]
            mean = "mean of subsets" if count == total else f"mean of {count} of {total} subsets"
            others[f"Spearman, {mean}"] = draw(x, y, subsets=among)
            others[f"Pearson, {mean}"] = draw(x, y, kind="pearson", subsets=among)
    cells = []
    for i, variant in enumerate(plan.variants):
        gain = None
        if i != plan.reference:
            gain = _gain(main.difference(i, plan.reference))
        figures = {name: _figure(found.test(i)) for name, found in others.items()}
        low, high = _interval(main.test(i))
        estimate = float(main.estimates[i])
        cells.append(Cell(encoder, task.name, variant.name, estimate, low, high, figures, gain))
    return cells


def _correlated(task: Pairs, similarities: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the pairs in subsets that have a correlation, and how many subsets that are."""
    names = np.array(task.subsets)
    rows = np.vstack([task.scores, similarities])
    subsets = [names == name for name in dict.fromkeys(task.subsets or ())]
    subsets = [x for x in subsets if x.sum() > 2 and (np.ptp(rows[:, x], axis=1) > 0).all()]
    return np.any(subsets, axis=0), len(subsets)


def _check_varied(task: Pairs, similarities: np.ndarray, plan: Plan) -> None:
    for variant, row in zip(plan.variants, similarities, strict=True):
        if row.min() == row.max():
            raise ValueError(
                f"{task.name}: expected similarities that differ, all {len(row)} by {variant.name} "
                f"are {row[0]:g}; the vectors of its texts are alike, check the encoder"
            )


def _gain(test: Test) -> Gain:
    low, high = _interval(test)
    found = test.detail.get("influence")  # three pairs have none
    p, name = (test.p, "paired bootstrap") if found is None else (found["p"], "influence t-test")
    return Gain(float(test.statistic), low, high, float(p), name, float(test.p))


def _figure(test: Test) -> tuple[float, float, float]:
    return float(test.statistic), *_interval(test)


def _interval(test: Test) -> tuple[float, float]:
    low, high = (np.nan if x is None else float(x) for x in (test.low, test.high))
    return low, high


# --- Measures that are means over queries, or the average precision ------------------------------


def _labelled(task: Pairs, similarities: np.ndarray, encoder: str, plan: Plan) -> list[Cell]:
    """Score by the average precision of pairs that are alike among all pairs."""
    measures = [average_precision(task.scores, row) for row in similarities]
    return _resampled(task, measures, len(task.scores), encoder, plan, [{} for _ in measures])


def _retrieval(
    task: Retrieval, rows: np.ndarray, transformed: Transformed, encoder: str, plan: Plan
) -> list[Cell]:
    """Score by the mean nDCG@10 over queries."""
    names = list(task.corpus)
    measures, others = [], []
    for variant in plan.variants:
        queries, corpus = transformed.of(
            variant.chain, rows[: len(task.queries)], rows[len(task.queries) :]
        )
        best = variant.best(queries, corpus, _DEPTH + 1)
        ranked = {  # a document is no answer to itself, as in BEIR
            query: [names[i] for i in found if names[i] != query][:_DEPTH]
            for query, found in zip(task.queries, best.tolist(), strict=True)
        }
        values = measure_retrieval(task, ranked, depth=_DEPTH)
        main = values.pop(MEASURES["retrieval"])
        measures.append(_mean(main))
        others.append({name: (float(x.mean()), np.nan, np.nan) for name, x in values.items()})
    return _resampled(task, measures, len(task.queries), encoder, plan, others)


def _mean(values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda weights: np.asarray(weights @ values / weights.sum(axis=1))


def _resampled(
    task: Task,
    measures: Sequence[Callable[[np.ndarray], np.ndarray]],
    size: int,
    encoder: str,
    plan: Plan,
    others: Sequence[dict[str, tuple[float, float, float]]],
) -> list[Cell]:
    """Score with percentile intervals; all variants see the same draws."""
    rng = np.random.default_rng(plan.seed)
    estimates = np.array([measure(np.ones((1, size)))[0] for measure in measures])
    drawn, step = [], max(1, _WEIGHTS // size)
    for start in range(0, plan.resamples, step):
        count = min(step, plan.resamples - start)
        picked = rng.integers(size, size=(count, size)) + size * np.arange(count)[:, None]
        weights = np.bincount(picked.ravel(), minlength=count * size).reshape(count, size)
        drawn.append([measure(weights.astype(np.float64)) for measure in measures])
    draws = np.concatenate(drawn, axis=1)
    cells = []
    for i, variant in enumerate(plan.variants):
        gain = None
        if i != plan.reference:
            apart = draws[i] - draws[plan.reference]
            beyond = min(np.count_nonzero(apart <= 0), np.count_nonzero(apart >= 0))
            p = min(1.0, 2 * (beyond + 1) / (plan.resamples + 1))
            estimate = float(estimates[i] - estimates[plan.reference])
            gain = Gain(estimate, *_middle(apart), p, "paired bootstrap", p)
        low, high = _middle(draws[i])
        cells.append(
            Cell(encoder, task.name, variant.name, float(estimates[i]), low, high, others[i], gain)
        )
    return cells


def _middle(draws: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def adjusted(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells with the p-values of all gains adjusted together (Benjamini-Hochberg)."""
    ps = [cell.gain.p for cell in cells if cell.gain is not None]
    found = iter(benjamini_hochberg(ps)) if ps else iter(())
    return [
        cell if cell.gain is None
        else replace(cell, gain=replace(cell.gain, adjusted=float(next(found))))
        for cell in cells
    ]  # fmt: skip

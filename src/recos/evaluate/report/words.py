"""Numbers as text, and what a comparison says in sentences: the same in every kind of report."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from recos.evaluate.results import Comparison
from recos.evaluate.statistics import Test, two_way_t
from recos.evaluate.variants import ALIASES

_FEW = 500  # pairs or queries
_ENCODERS = 4  # up to which each has a conclusion of its own


def points(score: float, *, signed: bool = False) -> str:
    """Return a score times 100 with two decimals."""
    if not math.isfinite(score):
        return "–"
    text = f"{100 * score:+.2f}" if signed else f"{100 * score:.2f}"
    return text.replace("+0.00", "0.00").replace("-0.00", "0.00").replace("-", "−")


def interval(low: float, high: float, *, signed: bool = False) -> str:
    """Return an interval of scores, times 100."""
    return f"{points(low, signed=signed)} to {points(high, signed=signed)}"


def p_text(p: float) -> str:
    """Return a p-value to three decimals."""
    if not math.isfinite(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def counts(comparison: Comparison, variant: str) -> tuple[int, int, int]:
    """Return in how many settings a variant is better, as good as can be told, and worse."""
    gains = [cell.gain for cell in comparison.cells if cell.variant == variant and cell.gain]
    better = sum(gain.significant and gain.estimate > 0 for gain in gains)
    worse = sum(gain.significant and gain.estimate < 0 for gain in gains)
    return better, len(gains) - better - worse, worse


def mean_gain(comparison: Comparison, variant: str) -> tuple[float, float, float]:
    """Return the mean gain of a variant and its interval, NaN where too few settings allow none."""
    gains = comparison.gains(variant)
    if gains.size == 1:
        [gain] = [cell.gain for cell in comparison.cells if cell.variant == variant and cell.gain]
        return gain.estimate, gain.low, gain.high
    test = comparison.across.get(variant, {}).get("two_way_t", {})
    low, high = (test.get(name) for name in ("low", "high"))
    if not _spans(comparison) or low is None or high is None:
        return float(gains.mean()), math.nan, math.nan
    return float(gains.mean()), low / 100, high / 100


def _spans(comparison: Comparison) -> bool:
    """Whether a mean over settings can have an interval: draws of two tell nothing of others."""
    return len(comparison.tasks) > 2 and len(comparison.encoders) != 2


def direction(comparison: Comparison, variant: str) -> int:
    """Return 1 where a variant is better than the baseline for certain, -1 if worse, else 0.

    That is what the interval of the mean gain says, where it has one; elsewhere settings must
    agree, and in a single one the gain must be significant.
    """
    better, _, worse = counts(comparison, variant)
    _, low, high = mean_gain(comparison, variant)
    if comparison.gains(variant).size > 1 and math.isfinite(low):
        return int(low > 0) - int(high < 0)
    return int(better > 0 and not worse) - int(worse > 0 and not better)


def verdict(comparison: Comparison, variant: str) -> str:
    """Say in one sentence how a variant did against the baseline."""
    return f"{variant}: {_gained(comparison, variant)} against {comparison.baseline}; " + (
        f"{_how_often(comparison, variant)}."
    )


def _gained(comparison: Comparison, variant: str) -> str:
    mean, low, high = mean_gain(comparison, variant)
    between = f" ({interval(low, high, signed=True)})" if math.isfinite(low) else ""
    return f"{points(mean, signed=True)} points{between}"


def _how_often(comparison: Comparison, variant: str) -> str:
    better, same, worse = counts(comparison, variant)
    total = better + same + worse
    if same == total:
        return "the difference is not significant" + (" in any setting" if total > 1 else "")
    if total == 1:
        return f"significantly {'better' if better else 'worse'}"
    return f"significantly better in {better} and worse in {worse} of {total} settings"


def conclusions(comparison: Comparison) -> list[str]:
    """Say which variant ranks best, what recos brings, and what cheaper does better."""
    found = []
    if small := [f"{x['name']} ({x['rows']})" for x in comparison.tasks if x["rows"] < _FEW]:
        found.append(f"Few rows, so a first look and no benchmark: {', '.join(small)}.")
    parts = comparison.by_measure()
    for measure, part in parts.items():
        said = [*_headlines(part), *_of_recos(part)]
        found += [f"{measure}: {text}" for text in said] if len(parts) > 1 else said
    return found + _notices(comparison)


def _headlines(comparison: Comparison) -> list[str]:
    """Say what to take: for each encoder, or for all where they are many."""
    encoders = comparison.encoder_names
    if len(encoders) == 1:
        return [_best(comparison)]
    alone = {encoder: _alone(comparison, encoder) for encoder in encoders}
    if len(encoders) <= _ENCODERS:
        return [f"{encoder}: {_best(part)}" for encoder, part in alone.items()]
    tops = (f"{encoder}: {_order(part)[0]}" for encoder, part in alone.items())
    return [_best(comparison), f"Highest by encoder: {'; '.join(tops)}."]


def _alone(comparison: Comparison, encoder: str) -> Comparison:
    """Return what was found with one of the encoders."""
    part = replace(
        comparison,
        encoders=[one for one in comparison.encoders if one["name"] == encoder],
        cells=[cell for cell in comparison.cells if cell.encoder == encoder],
        across={},
    )
    for variant in part.others:
        test = _across(part, part.gains(variant))
        part.across[variant] = {} if test is None else {"two_way_t": test.to_dict()}
    return part


def _across(comparison: Comparison, apart: np.ndarray) -> Test | None:
    """Return the test of a mean difference over all settings, of scores times 100."""
    if not _spans(comparison):
        return None
    sets, models = np.meshgrid(comparison.task_names, comparison.encoder_names)
    try:
        return two_way_t(100 * apart.ravel(), models.ravel().tolist(), sets.ravel().tolist())
    except ValueError:  # they differ by the same everywhere
        return None


def _best(comparison: Comparison) -> str:
    """Say which variant to take: another than the baseline only where it is better for certain."""
    baseline, means, order = comparison.baseline, _means(comparison), _order(comparison)
    if order[0] == baseline:
        return f"Keep {baseline}: no variant has a higher mean than its {points(means[baseline])}."
    if not any(counts(comparison, name)[0] for name in comparison.others):
        return f"No variant ranks significantly better than {baseline} here: keep {baseline}."
    sure = [name for name in order if name != baseline and direction(comparison, name) > 0]
    best = sure[0] if sure else order[0]
    what = "has the best mean" if best == order[0] else "is better for certain"
    what = what if comparison.gains(best).size > 1 else "scores best"
    told = (
        f"{points(means[best])} against {points(means[baseline])} of {baseline}: "
        f"{_gained(comparison, best)}; {_how_often(comparison, best)}."
    )
    if sure:
        return f"{best} {what}, {told}"
    return f"Keep {baseline}: {best} has the highest mean, but not for certain, {told}"


def _of_recos(comparison: Comparison) -> list[str]:
    """Say how recos did, and what is cheaper, as it sorts nothing, and scores higher."""
    if "recos" not in comparison.variants:
        return []
    found = [verdict(comparison, "recos")] if "recos" in comparison.others else []
    cheap = [name for name in comparison.variants if not _sorts(name)]
    if not cheap:
        return found
    means, baseline = _means(comparison), comparison.baseline
    rival = next(name for name in _order(comparison) if name in cheap)
    lead = round(means[rival] - means["recos"], 4)
    if lead < 0:
        last = "Nothing cheaper than recos has a higher mean here"
        if baseline in cheap and direction(comparison, "recos") == 0:
            last += f", but {baseline} is cheaper, and recos is not better for certain"
        return [*found, f"{last}."]
    if lead == 0:
        return [*found, f"Cheaper than recos and as high: {rival}."]
    return [*found, f"Cheaper than recos and higher: {rival}, by {_lead(comparison, rival)}."]


def _lead(comparison: Comparison, rival: str) -> str:
    """Say by how much a variant is ahead of recos, and whether that is certain."""
    apart = comparison.scores(rival) - comparison.scores("recos")
    told = f"{points(float(apart.mean()))} points"
    if apart.size == 1:
        return f"{told} (--baseline recos tests the difference)"
    where = f"higher in {int((apart > 0).sum())} of {apart.size} settings"
    test = _across(comparison, apart)
    if test is None or test.low is None or test.high is None:
        return f"{told}, {where} (--baseline recos tests the difference)"
    certain = "" if test.low > 0 else ", so not for certain"
    return f"{told} ({interval(test.low / 100, test.high / 100, signed=True)}), {where}{certain}"


def _notices(comparison: Comparison) -> list[str]:
    """Say what was left out, and what learnt from too little."""
    notices: list[str] = list(comparison.settings.get("notices") or ())
    return notices


def _means(comparison: Comparison) -> dict[str, float]:
    """Return the mean scores, rounded as they are shown, so that equal ones are equal."""
    return {name: round(float(comparison.scores(name).mean()), 4) for name in comparison.variants}


def _order(comparison: Comparison) -> list[str]:
    """Return the variants, the highest mean first."""
    means = _means(comparison)
    return sorted(
        comparison.variants, key=lambda name: (-means[name], *_effort(name, comparison.baseline))
    )


def _effort(name: str, baseline: str) -> tuple[bool, bool, int]:
    """Return what orders variants of equal means: the baseline first, then the cheaper ones."""
    return name != baseline, _sorts(name), ALIASES.get(name, name).count("+")


def _sorts(name: str) -> bool:
    """Whether a variant sorts each vector, which is what makes recos dearer than the cosine."""
    steps = ALIASES.get(name, name).split("+")
    return steps[-1] == "recos" or "rank" in steps


def several_measures(comparison: Comparison) -> bool:
    """Whether the tasks are not all scored by the same measure."""
    return len({task["measure"] for task in comparison.tasks}) > 1

"""Numbers as text, and what a comparison says in sentences: the same in every kind of report."""

from __future__ import annotations

import math

import numpy as np

from recos.evaluate.results import Comparison

_FEW = 500  # pairs or queries


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
    return (
        float(gains.mean()),
        math.nan if low is None else low / 100,
        math.nan if high is None else high / 100,
    )


def verdict(comparison: Comparison, variant: str) -> str:
    """Say in one sentence how a variant did against the baseline."""
    better, same, worse = counts(comparison, variant)
    total = better + same + worse
    mean, baseline = points(mean_gain(comparison, variant)[0], signed=True), comparison.baseline
    if same == total:
        found = "the difference is not significant" + (" in any setting" if total > 1 else "")
    elif total == 1:
        found = f"significantly {'better' if better else 'worse'}"
    else:
        found = f"significantly better in {better} of {total} settings, worse in {worse}"
    return f"{variant}: {mean} points against {baseline}; {found}."


def conclusions(comparison: Comparison) -> list[str]:
    """Say which variant ranks best, what recos brings, and what cheaper does better."""
    means = {name: float(comparison.scores(name).mean()) for name in comparison.variants}
    baseline, best = comparison.baseline, max(means, key=lambda name: means[name])
    found = []
    if not any(counts(comparison, name)[0] for name in comparison.others):
        found.append(
            f"No variant ranks significantly better than {baseline} here: keep {baseline}."
        )
    elif best == baseline:
        found.append(f"{baseline} has the best mean, {points(means[best])}.")
    else:
        better, _, worse = counts(comparison, best)
        total = comparison.gains(best).size
        found.append(
            f"{best} has the best mean, {points(means[best])}, against {points(means[baseline])} "
            f"of {baseline}; it is significantly better in {better} and worse in {worse} of "
            f"{total} settings."
            if total > 1
            else f"{best} scores best, {points(means[best])} against {points(means[baseline])} of "
            f"{baseline}; it is {'' if better else 'not '}significantly better."
        )
    if len(comparison.encoders) > 1:
        names = np.array(comparison.variants)
        table = np.array([comparison.scores(name).mean(axis=1) for name in names])
        tops = zip(comparison.encoder_names, names[table.argmax(axis=0)], strict=True)
        found.append(f"Best by encoder: {'; '.join(f'{one}: {name}' for one, name in tops)}.")
    if "recos" in comparison.others and best != "recos":
        found.append(verdict(comparison, "recos"))
    cheap = [name for name in comparison.variants if name.rpartition("+")[2] != "recos"]
    if "recos" in comparison.variants and cheap:
        rival = max(cheap, key=lambda name: means[name])
        ahead = int(np.sum(comparison.scores(rival) > comparison.scores("recos")))
        lead = means[rival] - means["recos"]
        total = comparison.gains(rival).size
        if lead > 0:
            where = f", higher in {ahead} of {total} settings" if total > 1 else ""
            found.append(
                f"Cheaper than recos and higher: {rival}, by {points(lead)} points{where} "
                "(--baseline recos tests the difference)."
            )
        else:
            found.append("Nothing cheaper than recos has a higher mean here.")
    if small := [f"{x['name']} ({x['rows']})" for x in comparison.tasks if x["rows"] < _FEW]:
        found.append(f"Few rows, so a first look only: {', '.join(small)}.")
    return found


def several_measures(comparison: Comparison) -> bool:
    """Whether the tasks are not all scored by the same measure."""
    return len({task["measure"] for task in comparison.tasks}) > 1

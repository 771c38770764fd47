"""What each change of the embeddings should gain, from what was measured without any scores.

Gains are in points: Spearman correlation x 100 of similarities with human scores of graded pairs.
The rules follow from how each change works, and their few constants are set so that sizes are right
to a factor of two or three; `benchmarks/advice.py` holds them against what happened.

* **Nuisance weakens a correlation.** Where a share of what makes scores differ has nothing to do
  with their meaning, a correlation of 0.6 is divided by √(1 + odds). Centring removes what single
  rows bring to all their pairs (``row_share``); removing the top direction, what that one brings.
  Where rows differ along their own mean (sums of many or few words), the mean hides that before
  it is subtracted, and centring lays it bare.
  Where the top direction lies along that mean, centring may do either.
* **Whitening** makes all directions equally large. That helps where the large ones are nuisance
  (rows or one direction dominate) or where components are rare features such as words. Embeddings
  that show none of this were most likely trained for the cosine: their small directions hold noise.
  Where directions are about equally large already, nothing shows what the small ones hold.
* **recos** cannot gain more than it changes the ranking. It should gain where it moves scores
  towards those of whitened rows, and lose where it moves them away.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple

_UNIT = "of Spearman correlation x 100, against the cosine"
_CORRELATION = 60.0  # points, of which nuisance takes its part
_OF_ROWS, _OF_TOP = 0.1, 0.03  # how much the nuisance among all pairs counts among related ones
_REACH = 16.0  # the most that a change of ranking by an angle of 1 gained, in points
_MOST_UNEVEN = 8.0  # points that whitening gains beyond removing what dominates
_UNDECIDED = 5e-4  # change of a rank correlation that tells nothing
_RARE = 9.0  # kurtosis from which on components are rare features
_EVEN = 0.4  # effective directions per direction, from which on they are about equally large
_EXPOSED = 0.1  # alignment times random cosine, from which on centring may lay lengths bare
_MOST = 40.0  # points that any change may gain or lose: none of those measured did more


class Signs(NamedTuple):
    """What the rules need to know."""

    row_share: float  # of the variance of random cosines that single rows explain
    top_odds: float  # variance of centred products along the first direction, over the rest
    alignment: float  # squared cosine of that direction with the mean of the rows
    random_cosine: float  # mean of two rows
    evenness: float  # effective number of directions over their number
    axis_evenness: float  # the same of the variances of components
    kurtosis: float  # of a typical component
    moved: float  # 1 - rank correlation of recos and the cosine among related pairs
    moved_centred: float  # the same after centring
    towards: float  # how much nearer recos ranks to whitened rows than the cosine does
    enough: bool  # whether there are rows enough to whiten


class Expected(NamedTuple):
    """What a change should gain, in points: about, at least and at most, and in a word."""

    points: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Return ``helps``, ``hurts``, ``little`` or ``not clear``."""
        if max(abs(self.low), abs(self.high)) <= 1:
            return "little"
        if self.low >= -0.1:
            return "helps"
        return "hurts" if self.high <= 0.25 else "not clear"


def expect(signs: Signs) -> dict[str, Expected]:
    """Return what to expect of each change, compared with the cosine as it is."""
    rows = _taken(_OF_ROWS * signs.row_share / max(1 - signs.row_share, 1e-3))
    in_top = _taken(_OF_TOP * signs.top_odds)
    hidden = in_top * signs.alignment * max(signs.random_cosine, 0.0)
    rows, top = rows - hidden, rows + in_top - hidden
    center, reach = _of_centring(signs, rows), _reach(signs.moved_centred)
    found = {
        "recos": _of_recos(signs),
        "center+cos": center,
        "center+recos": Expected(rows, center.low - reach, center.high + reach),
        "removetop+cos": _around(top),
        "standardize+cos": _of_standardizing(signs, rows, top),
        "whiten+cos": _of_whitening(signs, rows, top),
    }
    return {name: _capped(change) for name, change in found.items()}


def is_dominated(signs: Signs) -> bool:
    """Whether single rows, or one direction, make up much of what scores differ by."""
    return signs.row_share > 0.3 or signs.top_odds > 0.9


def has_rare_features(signs: Signs) -> bool:
    """Whether components are mostly as good as zero, as counts of words are."""
    return signs.kurtosis > _RARE


def _capped(change: Expected) -> Expected:
    return Expected(*(min(max(points, -_MOST), _MOST) for points in change))


def _taken(odds: float) -> float:
    """Return the points that nuisance takes from a correlation."""
    return _CORRELATION * (1 - 1 / sqrt(1 + odds))


def _around(points: float) -> Expected:
    if points < 0:
        return Expected(points, 1.7 * points - 0.3, points / 4 + 0.2)
    return Expected(points, points / 4 - 0.2, 1.7 * points + 0.3)


def _reach(moved: float) -> float:
    return _REACH * sqrt(2 * max(moved, 0.0))


def _of_centring(signs: Signs, rows: float) -> Expected:
    found = _around(rows)
    if rows < 0 or signs.alignment * signs.random_cosine < _EXPOSED:
        return found
    return found._replace(low=min(found.low, -1.5))


def _of_recos(signs: Signs) -> Expected:
    reach = _reach(signs.moved)
    if abs(signs.towards) <= _UNDECIDED:
        return Expected(0.0, -reach, reach)
    if signs.towards > 0:
        return Expected(reach / 2, 0.0, reach)
    # Losses were far smaller than gains: what recos moves away from is partly noise.
    return Expected(-reach / 6, -0.4 * reach, min(reach / 8, 0.25))


def _uneven(signs: Signs) -> float:
    return min(_MOST_UNEVEN, 3 * (1 / sqrt(signs.evenness) - 1))


def _of_whitening(signs: Signs, rows: float, top: float) -> Expected:
    if not signs.enough:
        return Expected(0.0, -10.0, 10.0)
    if is_dominated(signs) or has_rare_features(signs):
        points = top + _uneven(signs) / 2
        return Expected(points, points / 8, 2.8 * points)
    points = rows + min(0.3, 0.75 - _uneven(signs))
    if signs.evenness > _EVEN:
        return Expected(points, -1.5, 5.0)
    return Expected(points, min(2 * points, 0) - 0.5, max(2 * points, points / 4) + 0.5)


def _of_standardizing(signs: Signs, rows: float, top: float) -> Expected:
    """Return what centring gives, and a part of whitening where components are unequal."""
    center, unequal = _of_centring(signs, rows), 1 - signs.axis_evenness
    if has_rare_features(signs):
        points = rows + 0.7 * (top - rows + _uneven(signs))
        return Expected(points, points / 4, 2 * points)
    return Expected(rows + unequal, center.low - 2 * unequal, center.high + 8 * unequal)


def advise(facts: Mapping[str, Any], signs: Signs) -> str:
    """Return in one paragraph what was found and what to do."""
    expected: dict[str, Expected] = facts["expected"]
    texts = [_text_of_crowding(facts, signs)]
    if expected:
        texts += [
            _text_of_recos(facts, expected["recos"]),
            _text_of_centring(facts, expected["center+cos"], expected["removetop+cos"]),
            _text_of_whitening(signs, expected["whiten+cos"]),
            f"All points are {_UNIT}.",
        ]
    else:
        texts.append("There are too few rows here to expect anything: take 100, better thousands.")
    texts.append(_text_of_rows(facts))
    return " ".join(text for text in texts if text)


def _text_of_crowding(facts: Mapping[str, Any], signs: Signs) -> str:
    how = "well spread" if facts["row_share"] < 0.3 and signs.top_odds < 0.9 else "crowded"
    return (
        f"These embeddings are {how}: two random rows have a cosine of "
        f"{facts['random_cosine']:.2f}, single rows explain {facts['row_share']:.0%} of how such "
        f"cosines differ, and one direction holds {facts['top_share']:.0%} of the variance."
    )


def _text_of_recos(facts: Mapping[str, Any], expected: Expected) -> str:
    changed = f"it changes {facts['changed_entries']:.1%} of the entries of top-10 lists"
    if max(-expected.low, expected.high) < 0.15:
        return f"recos ranks as the cosine does ({changed}): use either."
    text = f"recos {_gains(expected)}: {changed}."
    if facts["energy_share"] > 0.1:
        text += (
            f" Component {facts['largest']} alone holds {facts['energy_share']:.0%} of the mean "
            "square, and what recos changes depends on it."
        )
    surviving = facts["surviving_rotation"]
    if surviving is not None and surviving < 0.5:
        text += f" Rotating the space would leave {surviving:.0%} of that change."
    return text


def _text_of_centring(facts: Mapping[str, Any], center: Expected, top: Expected) -> str:
    text = f"Subtracting the mean of the corpus {_gains(center)}"
    if top.high > 1.5 * center.high:
        text += f", and removing the direction of largest variance too {_gains(top)}"
    recos: Expected = facts["expected"]["recos"]
    if center.verdict == "helps" and center.high > recos.high:
        text += ": more than recos, which changes little after it"
    return text + "."


def _text_of_whitening(signs: Signs, expected: Expected) -> str:
    if not signs.enough:
        return (
            "There are too few rows here to learn whitening from: take three times as many as "
            "components, better ten times."
        )
    why = "as nothing dominates here, small directions are likely to hold noise"
    if is_dominated(signs):
        why = "as it makes small what single rows or one direction dominate"
    elif has_rare_features(signs):
        why = "as components are rare features, which it weighs by how rare they are"
    elif signs.evenness > _EVEN:
        why = "as directions are about equally large, which hides what the smaller ones hold"
    return f"Whitening {_gains(expected)}, {why}."


def _text_of_rows(facts: Mapping[str, Any]) -> str:
    if not facts["odd_rows"]:
        return ""
    hubs = [row for row in facts["odd_rows"] if row.kind == "hub"]
    broken = [row for row in facts["odd_rows"] if row.kind != "hub"]
    counts = {kind: count for kind, count in facts["odd"].items() if kind != "hub"}
    texts = []
    if broken:
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        texts.append(f"Drop or mend the odd rows first ({told}): row {_named(broken)}.")
    if hubs:
        texts.append(f"Hubs, which may be as they should be: row {_named(hubs)}.")
    return " ".join(texts)


def _named(rows: list[Any]) -> str:
    return ", ".join(
        f"{row.row} ({row.kind}; in {row.recos_lists:.0%} of lists by recos, {row.cos_lists:.0%} "
        "by the cosine)"
        for row in rows[:5]
    )


def _gains(expected: Expected) -> str:
    """Return in words what is expected, in points."""
    points, low, high = expected
    between = f"between {low:+.1f} and {high:+.1f} points".replace("-", "−")
    if expected.verdict == "little":
        return f"should change little ({between})"
    if expected.verdict == "not clear":
        return f"may help or hurt, which scores alone can tell ({between})"
    return f"should {expected.verdict[:-1]} by about {abs(points):.1f} ({between})"

"""What recos and cheap transforms will change on some embeddings, without any human scores.

All rows are looked at once for those that are zero, tiny, huge or nearly constant: a constant row
is ordered like every other, so its recos is ±1 with all of them, and it enters their top lists; a
huge one draws the mean and every direction to itself. A sample of the others is measured
(``_measures``), and rules tell what follows (``_advice``).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from recos._advice import Expected, Signs, advise, expect
from recos._arrays import check_finite, on_host, read
from recos._blocks import parse_memory, spans
from recos._measures import measure_directions, measure_lists, measure_pairs

_COMPARED = 1200  # rows that are compared all with all
_LEARNT = 20_000  # rows that transforms learn from
_CORPUS = 50_000  # rows that are searched
_NUMBERS = 2**20  # that are looked at at a time
_SHOWN = 20  # odd rows, and hubs, that are named at most
_CONSTANT, _TINY = 0.1, 1e-6  # spread over size, and size over the median, below which rows are odd
_HUGE = 30  # size over the median, from which on rows are odd
_JUDGED = 100  # rows, below which nothing is expected: too few to tell


class OddRow(NamedTuple):
    """A row that is zero, tiny, huge, nearly constant, or in far more top-10 lists than others.

    Attributes
    ----------
    row : int
        Its number.
    kind : str
        ``zero``, ``near-constant``, ``near-constant and tiny``, ``tiny``, ``huge`` or ``hub``.
    norm : float
        Its length.
    recos_lists, cos_lists : float
        The share of the lists that it is in, by recos and by the cosine.
    """

    row: int
    kind: str
    norm: float
    recos_lists: float
    cos_lists: float


@dataclass(frozen=True)
class Diagnosis:
    """What was measured on embeddings, and what to make of it.

    Attributes
    ----------
    rows, width, sampled : int
        How many rows and components there are, and how many rows were searched.
    largest : int
        The component with the largest mean square.
    variance_share, energy_share : float
        Its share of the variance and of the mean square.
    random_cosine : float
        Mean cosine of two rows.
    row_share : float
        Share of the variance of these cosines that single rows explain: some are near to all.
    top_share : float
        Share of the variance along the direction where it is largest.
    effective_width : float
        How many directions there are in effect: (Σλ)²/Σλ² of their variances λ.
    profile_cosine : dict
        Quantiles, over pairs, of the cosine over recos: where all are 1, recos is the cosine.
    rank_correlation : float
        Of recos and the cosine, over pairs from the nearest to the farthest.
    surviving_rotation : float or None
        Share of what recos changes that it still changes after a random rotation; None where it
        changes next to nothing.
    thresholds : dict
        For some cosines, the recos that as many pairs reach.
    changed_lists, changed_entries : float
        Share of top-10 lists that change from the cosine to recos, and of their entries.
    candidates : float
        Rows that an exact search by recos scores for each query, of those searched.
    odd_rows : tuple of OddRow
        Rows to look at: at most 20 odd ones, then hubs, those in most lists by recos first.
    odd : dict
        How many there are, by kind.
    expected : dict of Expected
        For each change, the points that it should gain over the cosine, and a verdict; nothing
        where fewer than 100 rows can be measured.
    advice : str
        All of it in one paragraph.
    """

    rows: int
    width: int
    sampled: int
    largest: int
    variance_share: float
    energy_share: float
    random_cosine: float
    row_share: float
    top_share: float
    effective_width: float
    profile_cosine: dict[float, float]
    rank_correlation: float
    surviving_rotation: float | None
    thresholds: dict[float, float]
    changed_lists: float
    changed_entries: float
    candidates: float
    odd_rows: tuple[OddRow, ...]
    odd: dict[str, int]
    expected: dict[str, Expected]
    advice: str

    def recos_threshold(self, cosine: float) -> float:
        """Return the recos that as many pairs reach as reach a cosine.

        Parameters
        ----------
        cosine : float
            A threshold in use, from 0 to 1.

        Returns
        -------
        float
        """
        if not 0 <= cosine <= 1:
            raise ValueError(f"cosine: expected a number from 0 to 1, got {cosine!r}")
        known = self.thresholds | {1.0: 1.0}
        return float(np.interp(cosine, list(known), list(known.values())))

    def summary(self) -> dict[str, str]:
        """Return what was measured, in words by name."""
        surviving = self.surviving_rotation
        quantiles = self.profile_cosine.items()
        return {
            "rows": f"{self.rows:,} of {self.width} numbers, {self.sampled:,} searched",
            "largest component": f"{self.largest}: {self.variance_share:.1%} of the variance, "
            f"{self.energy_share:.1%} of the mean square",
            "directions": f"{self.effective_width:.1f} in effect, {self.top_share:.1%} of the "
            "variance along the first",
            "random cosine": f"{self.random_cosine:.3f} on average; single rows explain "
            f"{self.row_share:.0%} of how it varies",
            "cosine over recos": ", ".join(f"{x:.3f} ({q:.0%})" for q, x in quantiles),
            "cosine to recos": f"{self.changed_lists:.1%} of top-10 lists change, "
            f"{self.changed_entries:.1%} of their entries",
            "after a rotation": "recos changed next to nothing before"
            if surviving is None
            else f"{surviving:.0%} of that change is left",
            "candidates": f"{self.candidates:,.0f} rows scored for each query",
            "recos for cosine": ", ".join(
                f"{self.recos_threshold(x):.3f} for {x}" for x in (0.5, 0.7, 0.8, 0.9)
            ),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        found = asdict(self)
        found["summary"] = self.summary()
        found["odd_rows"] = [row._asdict() for row in self.odd_rows]
        found["expected"] = {
            name: value._asdict() | {"verdict": value.verdict}
            for name, value in self.expected.items()
        }
        for name in ("profile_cosine", "thresholds"):
            found[name] = {str(key): value for key, value in found[name].items()}
        return found


def diagnose(X: Any, /, *, memory: str | int = "256MiB", seed: int = 0) -> Diagnosis:
    """Say what recos and cheap transforms will change on some embeddings.

    Nothing but the embeddings is needed, and a sample of them is enough: it takes seconds.

    Parameters
    ----------
    X : array, shape (n, d)
        Rows of a corpus, at least 3 of them neither zero nor constant.
    memory : str or int
        How much to use beside X, about; less makes the sample smaller.
    seed : int
        Which sample to take.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import numpy as np
    >>> import recos
    >>> X = np.random.default_rng(0).normal(size=(1000, 32))
    >>> X[7] = 1e-12  # a constant row is similar to everything
    >>> found = recos.diagnose(X)
    >>> found.odd_rows[0].row, found.odd_rows[0].kind
    (7, 'near-constant and tiny')
    >>> found.expected["center+cos"].verdict
    'little'
    """
    budget, rng = parse_memory(memory), np.random.default_rng(seed)
    rows = on_host(read(X, names=("X",))).arrays[0]
    if rows.ndim != 2:
        raise ValueError(
            f"X: expected a matrix of shape (rows, components), got shape {rows.shape}"
        )
    if rows.shape[1] < 2:
        raise ValueError(f"X: expected rows of at least 2 components, got shape {rows.shape}")
    norm, spread = _sizes(rows)
    kinds = _kinds(norm, spread) if len(rows) else np.zeros(0, "<U24")
    odd, usual = np.flatnonzero(kinds != ""), np.flatnonzero(kinds == "")
    if len(usual) < 3:
        raise ValueError(
            "X: expected at least 3 rows that are neither zero nor tiny nor huge nor constant, got "
            f"{len(usual)} among {len(rows)}"
        )
    room = max(100, budget // (16 * rows.shape[1]))
    usual = np.sort(rng.permutation(usual)[: min(room, _CORPUS)])
    learnt = rng.permutation(_of_size_one(rows[usual]))[:_LEARNT]
    compared = learnt[: max(3, min(_COMPARED, int((budget / 64) ** 0.5)))]
    facts, signs = measure_directions(learnt)
    of_pairs, more_signs = measure_pairs(compared, learnt, rng)
    signs |= more_signs
    searched = np.concatenate([usual, odd[:_CORPUS]])
    lists, shares = measure_lists(np.asarray(rows[searched], np.float32), len(usual), rng)
    named, counts = _named(kinds, norm, searched, shares)
    expected = expect(Signs(**signs)) if len(usual) >= _JUDGED else {}
    facts |= (
        of_pairs
        | lists
        | {
            "rows": len(rows),
            "width": rows.shape[1],
            "sampled": len(searched),
            "odd_rows": tuple(named),
            "odd": counts,
            "expected": expected,
        }
    )
    return Diagnosis(**facts, advice=advise(facts, Signs(**signs)))


def _sizes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the norm of each row, and the spread of its components over their size."""
    norm, spread = np.zeros(len(rows)), np.zeros(len(rows))
    for part in spans(len(rows), max(1, _NUMBERS // rows.shape[1])):
        some = rows[part].astype(np.float64)
        largest = np.abs(some).max(axis=1)
        check_finite(np, largest, "X", part.start)
        some /= np.where(largest > 0, largest, 1)[:, None]
        square = np.square(some).mean(axis=1)
        norm[part] = largest * np.sqrt(square * rows.shape[1])
        spread[part] = some.std(axis=1) / np.sqrt(np.where(square > 0, square, 1))
    return norm, spread


def _kinds(norm: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return what is odd about each row, nothing for most."""
    typical = np.median(norm[norm > 0]) if norm.any() else 0.0
    constant = (spread <= min(_CONSTANT, np.median(spread) / 4)) & (norm > 0)
    tiny = (norm < _TINY * typical) & (norm > 0)
    kinds = np.where(constant, "near-constant", "").astype("<U24")
    kinds[tiny] = np.where(constant[tiny], "near-constant and tiny", "tiny")
    kinds[~constant & (norm > _HUGE * typical)] = "huge"
    kinds[norm == 0] = "zero"
    return kinds


def _of_size_one(rows: np.ndarray) -> np.ndarray:
    """Return rows as float64, scaled together: their sizes among each other stay."""
    some = rows.astype(np.float64)
    scale = np.median(np.abs(some).max(axis=1))
    scaled: np.ndarray = some / scale
    return scaled


def _named(
    kinds: np.ndarray, norm: np.ndarray, searched: np.ndarray, shares: np.ndarray
) -> tuple[list[OddRow], dict[str, int]]:
    """Return odd rows, then hubs, those in most lists first, and how many there are by kind.

    A hub is in one list of twenty, and in ten times as many as rows are on average.
    """
    hub = shares.max(axis=0) > np.maximum(0.05, 10 * shares.mean())
    names = np.where((kinds[searched] == "") & hub, "hub", kinds[searched])
    named = [
        OddRow(int(row), str(names[i]), float(norm[row]), float(shares[1, i]), float(shares[0, i]))
        for i, row in enumerate(searched)
        if names[i]
    ]
    every = np.concatenate([kinds[kinds != ""], names[names == "hub"]])
    found, count = np.unique(every, return_counts=True)
    named.sort(key=lambda row: (row.kind == "hub", -row.recos_lists, -row.cos_lists, row.row))
    hubs = [row for row in named if row.kind == "hub"][:_SHOWN]
    named = [row for row in named if row.kind != "hub"][:_SHOWN] + hubs
    return named, dict(zip(found.tolist(), count.tolist(), strict=True))

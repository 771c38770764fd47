"""What the steps of a search pass on."""

from __future__ import annotations

from typing import NamedTuple

from recos._arrays import Array

TILE = 64  # rows whose largest product is kept
RANK = 7  # coordinates of a profile: with what they leave out, 32 bytes
# What the rows of ``Queries.numbers`` are: as in ``_kernels/cuda/sift.cu``.
EPSILON, MOST, SHARE, REST, FLOOR, KNOWN, SCALE, LAST = range(8)


class DeviceCorpus(NamedTuple):
    """Rows in the memory of a device, and what is known of each.

    Attributes
    ----------
    rows : (m, d)
        As they are stored.
    over : (m,)
        1/‖v‖, 0 for rows of zeros and those that may not be found.
    features : (m, RANK + 1)
        Coordinates of the profile, and the length of what they leave out.
    info : (m, 4)
        What a row is multiplied with to fold it, the length of its folded self, what its codes lose
        of that, and what the first coordinate leaves of its profile over its share.
    tiles : (tiles, 4)
        The largest of the last three in each tile, and what codes lose at most where that is known.
    codes : (tiles * 64, padded width), optional
        Folded rows; without them rows are multiplied as they lie.
    scale : (tiles,)
        What the codes of a tile are to be multiplied with.
    basis : (RANK, d)
        Profiles; the first is the one that all rows share.
    """

    rows: Array
    over: Array
    features: Array
    info: Array
    tiles: Array
    codes: Array
    scale: Array
    basis: Array


class Queries(NamedTuple):
    """Queries as they are, of length 1, as codes, and numbers of each (named above)."""

    rows: Array
    unit: Array
    table: Array
    codes: Array
    numbers: Array
    own: Array

    def some(self, which: Array) -> Queries:
        rows, unit, table, codes = (x[which] for x in self[:4])
        return Queries(rows, unit, table, codes, self.numbers[:, which], self.own[which])


class FoundOnDevice(NamedTuple):
    """The best rows of each query in float64, on the device, and how many were scored for each."""

    scores: Array
    indices: Array
    scored: Array

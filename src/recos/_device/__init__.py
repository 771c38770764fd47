"""Exact search on a GPU: screened by the tensor cores, certified, scored in float64.

Every row is folded: its unit self over c, its sorted self's share of one profile. The product x of
a unit query with a folded row is the score times the query's own share, up to what the rest of both
profiles can add. So the largest product of a tile of 64 rows, plus what rounding can hide, limits
all its scores, and only these maxima are written: the matrix of products never exists.

1. ``maxima``: one product of codes (float16, bfloat16 or int8) per pair.
2. The k best tiles of a query have k different rows: the least of their lower limits is a floor.
3. ``sift`` looks at the rows of the best tiles with all coordinates, which raises the floor to
   nearly the k-th best score, then at those of the others that may reach it.
4. What is left is scored in float64 and ordered by score, then by index.

Queries whose best scores are not positive, or whose profile is unlike all others, are compared with
all rows in float64.

The files, each of which imports from those above it alone:

* ``records``: what the steps pass on.
* ``steps``: each by a kernel (``_kernels/warps``, ``_kernels/triton``), or by plain PyTorch.
* ``corpus``, ``queries``: what is known of rows, and of queries.
* ``compare``: queries compared with all rows in float64.
* ``screen``: the steps above, in order.
* ``topk``, ``reach``: the best rows of a corpus; those that reach a threshold.
* ``sections``: rows that are described and searched a section at a time.
* ``kept``: rows that an index keeps.
"""

from recos._device.corpus import check_finite_rows, make_corpus
from recos._device.kept import DTYPES, detached, keep, on_device, read_device, search_kept, to_host
from recos._device.sections import reaching_rows, search_rows
from recos._device.topk import search

__all__ = [
    "DTYPES",
    "check_finite_rows",
    "detached",
    "keep",
    "make_corpus",
    "on_device",
    "reaching_rows",
    "read_device",
    "search",
    "search_kept",
    "search_rows",
    "to_host",
]

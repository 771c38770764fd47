"""CUDA kernels in which a warp holds a row: sorted in registers, summed in float64.

A lane holds every 32nd number of a row. Runs within lanes are sorted by Batcher's odd-even network,
then runs of two, four, ... lanes are merged by his bitonic one, whose numbers meet through
shuffles. Sorted rows exist in registers alone: nothing but sums is ever written.

* ``score``: dot product, rearrangement bound and squares of pairs of rows, given row by row or by
  number.
* ``describe``: squares of rows, and products of their sorted selves with a few vectors.
* ``rank``: the best of the candidates of each query.
* ``encode``: folded rows as float16, or as int8 with a scale for each 64 rows, and what that loses.
* ``sift``: the rows of tiles that may reach a threshold (see ``_device``).

The kernels are CUDA C++ (in ``cuda/``), compiled when first used for a width, by the compiler that
PyTorch carries. They know widths of up to 2048 numbers; what is wider is done by PyTorch itself.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any

WIDEST = 2048
_THREADS = 256
_TYPES = {"float32": "float", "float16": "f16", "bfloat16": "bf16", "int8": "signed char"}

Exchanges = list[tuple[int, int]]


def odd_even(size: int) -> Exchanges:
    """Return what to compare to sort numbers (Batcher 1968, for any size)."""
    found, run = [], 1
    while run < size:
        step = run
        while step:
            for start in range(step % run, size - step, 2 * step):
                some = range(start, start + min(step, size - start - step))
                found += [(i, i + step) for i in some if i // (2 * run) == (i + step) // (2 * run)]
            step //= 2
        run *= 2
    return found


def bitonic(size: int, start: int = 0) -> Exchanges:
    """Return what to compare to sort numbers that rise, then fall; also from any place on."""
    half, odd = divmod(size, 2)
    if odd:
        return [(start + i, start + j) for i, j in odd_even(size)]
    halves = [(start + i, start + i + half) for i in range(half)]
    return halves + bitonic(half, start) + bitonic(half, start + half)


@cache
def _kernel(
    name: str, width: int, left: str, right: str, rank: int, codes: str = "int8", coded: bool = True
) -> Any:
    """Return a kernel for rows of a width and two dtypes; compiled once in a process."""
    import torch  # noqa: PLC0415 - heavy

    items = -(-width // 32)
    lines = [
        f"#define WIDTH {width}",
        f"#define ITEMS {items}",
        f"#define RANK {rank}",
        f"#define LEFT {_TYPES[left]}",
        f"#define RIGHT {_TYPES[right]}",
        f"typedef {_TYPES[codes]} CODES;",
        f"#define CODED {int(coded)}",
        "#define SORT " + " ".join(f"exchange(x[{i}], x[{j}]);" for i, j in odd_even(items)),
        "#define MERGE " + " ".join(f"exchange(x[{i}], x[{j}]);" for i, j in bitonic(items)),
    ]
    folder = files("recos._kernels") / "cuda"
    numbers, rows, kernel = (
        (folder / file).read_text() for file in ("numbers.cuh", "rows.cuh", f"{name}.cu")
    )
    source = "\n".join([numbers, *lines, rows, kernel])
    return torch.cuda._compile_kernel(source, name)


def _dtype(x: Any) -> str:
    return str(x.dtype).rpartition(".")[2]


def fits(*tensors: Any) -> bool:
    """Whether the kernels know rows of this kind."""
    import torch  # noqa: PLC0415 - heavy

    return (
        hasattr(torch.cuda, "_compile_kernel")
        and torch.version.hip is None
        and all(
            x.is_cuda
            and _dtype(x) in ("float32", "float16", "bfloat16")
            and x.shape[-1] <= WIDEST
            and x.is_contiguous()
            for x in tensors
        )
    )


def score(u: Any, v: Any, which_u: Any = None, which_v: Any = None) -> Any:
    """Return float64 sums of pairs of rows, shape (5, n).

    They are the dot product, the bound for its sign, the other bound where the sign is not certain
    (elsewhere infinite), and the squares of both norms. Pair i is row ``which_u[i]`` of ``u`` with
    row ``which_v[i]`` of ``v``; without numbers it is row i, or the only row there is.
    """
    import torch  # noqa: PLC0415 - heavy

    numbered = [x for x in (which_u, which_v) if x is not None]
    count = len(numbered[0]) if numbered else max(len(u), len(v))
    out = torch.empty((5, count), dtype=torch.float64, device=u.device)
    if not count:
        return out
    steps = [
        1 if len(x) > 1 or which is not None else 0 for x, which in ((u, which_u), (v, which_v))
    ]
    places = torch.empty(1, dtype=torch.int64, device=u.device)
    kernel = _kernel("score", u.shape[1], _dtype(u), _dtype(v), 1)
    _launch(
        kernel, count * 32, u.device,
        [
            u, v, places if which_u is None else which_u, places if which_v is None else which_v,
            out, count, *steps, int(which_u is not None), int(which_v is not None),
        ],
    )  # fmt: skip
    return out


def describe(x: Any, basis: Any) -> tuple[Any, Any]:
    """Return squares (n,) in float64, and products of sorted unit rows with vectors (n, rank)."""
    import torch  # noqa: PLC0415 - heavy

    rank, width = basis.shape
    items = -(-width // 32)
    laid = torch.zeros((rank, 32 * items), dtype=torch.float32, device=x.device)
    laid[:, :width] = basis
    laid = laid.reshape(rank, 32, items).transpose(1, 2).contiguous()  # as lanes hold sorted rows
    squares = torch.empty(len(x), dtype=torch.float64, device=x.device)
    table = torch.empty((len(x), rank), dtype=torch.float32, device=x.device)
    if len(x):
        kernel = _kernel("describe", width, _dtype(x), _dtype(x), rank)
        _launch(kernel, len(x) * 32, x.device, [x, laid, squares, table, len(x)])
    return squares, table


def encode(x: Any, weight: Any, codes: Any, scale: Any, lost: Any) -> None:
    """Write rows times their weights as codes, how large these are, and the length of what is lost.

    ``codes`` (tiles * 64, padded width) is float16 or int8; ``scale`` (tiles,) is 1 for float16.
    """
    import torch  # noqa: PLC0415 - heavy

    kernel = _kernel("encode", x.shape[1], _dtype(x), _dtype(x), 1, _dtype(codes))
    with torch.cuda.device(x.device):
        kernel(
            grid=(len(scale), 1, 1), block=(_THREADS, 1, 1),
            args=[x, weight, codes, scale, lost, len(x), codes.shape[1]],
        )  # fmt: skip


def sift(
    queries: Any, numbers: Any, table: Any, codes: Any, maxima: Any, tiles: Any, rows: Any,
    info: Any, over: Any, features: Any, row_codes: Any, scale: Any, own: Any, found: Any,
    lower: Any, counts: Any, stage: int,
) -> None:  # fmt: skip
    """Write the rows of tiles that may reach the floors of queries; see ``_device.steps``."""
    import torch  # noqa: PLC0415 - heavy

    coded = row_codes is not None
    right = row_codes if coded else rows
    kernel = _kernel(
        "sift", rows.shape[1], "float32", _dtype(rows), table.shape[1] - 1, _dtype(right), coded
    )
    with torch.cuda.device(rows.device):
        kernel(
            grid=(-(-len(maxima) // 4), 1, 1), block=(_THREADS, 1, 1),
            args=[
                queries, numbers, table, codes, maxima, tiles, rows, info, over, features, right,
                scale, own, found, lower, counts,
                len(queries), len(rows), len(maxima), lower.shape[1], stage,
                right.shape[1],
            ],
        )  # fmt: skip


def rank(
    queries: Any, rows: Any, floors: Any, found: Any, counts: Any, best: Any, which: Any,
    scored: Any, flags: Any, *, sorts: bool,
) -> None:  # fmt: skip
    """Score candidates in float64 and write the best, in order.

    ``found`` (n, room, 2) holds rows and the bits of their upper limits. ``flags`` of a query gets
    1 where there were more than there is room for, 2 where rounding spoils a score.
    """
    import torch  # noqa: PLC0415 - heavy

    kernel = _kernel("rank", rows.shape[1], _dtype(queries), _dtype(rows), 1)
    room, items = found.shape[1], -(-rows.shape[1] // 32)
    with torch.cuda.device(rows.device):
        kernel(
            grid=(len(queries), 1, 1), block=(_THREADS, 1, 1),
            args=[
                queries, rows, floors, found, counts, best, which, scored, flags, room,
                best.shape[1], int(sorts),
            ],
            shared_mem=12 * room + 128 * items,
        )  # fmt: skip


def _launch(kernel: Any, threads: int, device: Any, args: list[Any]) -> None:
    import torch  # noqa: PLC0415 - heavy

    with torch.cuda.device(device):
        kernel(grid=(math.ceil(threads / _THREADS), 1, 1), block=(_THREADS, 1, 1), args=args)

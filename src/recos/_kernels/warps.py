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

The kernels are CUDA C++, compiled when first used for a width, by the compiler that PyTorch carries.
They know widths of up to 2048 numbers; what is wider is done by PyTorch itself.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

WIDEST = 2048
TILE = 64  # rows of a tile
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
                for i in range(start, start + min(step, size - start - step)):
                    if i // (2 * run) == (i + step) // (2 * run):
                        found.append((i, i + step))
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
def _kernel(name: str, width: int, left: str, right: str, rank: int, codes: str = "none") -> Any:
    """Return a kernel for rows of a width and two dtypes; compiled once in a process."""
    import torch  # noqa: PLC0415 - heavy

    items = -(-width // 32)
    lines = [
        f"#define WIDTH {width}",
        f"#define ITEMS {items}",
        f"#define RANK {rank}",
        f"#define LEFT {_TYPES[left]}",
        f"#define RIGHT {_TYPES[right]}",
        f"#define CODES {_TYPES.get(codes, 'signed char')}",
        f"#define CODED {int(codes != 'none')}",
        "#define SORT " + " ".join(f"exchange(x[{i}], x[{j}]);" for i, j in odd_even(items)),
        "#define MERGE " + " ".join(f"exchange(x[{i}], x[{j}]);" for i, j in bitonic(items)),
    ]
    return torch.cuda._compile_kernel("\n".join(lines) + _COMMON + _SOURCES[name], name)


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
    steps = [1 if len(x) > 1 or which is not None else 0 for x, which in ((u, which_u), (v, which_v))]
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
    """Write the rows of tiles that may reach the floors of queries; see ``_device.sift``."""
    import torch  # noqa: PLC0415 - heavy

    coded = row_codes is not None
    kernel = _kernel(
        "sift", rows.shape[1], "float32", _dtype(rows), table.shape[1] - 1,
        _dtype(row_codes) if coded else "none",
    )  # fmt: skip
    with torch.cuda.device(rows.device):
        kernel(
            grid=(-(-len(maxima) // 4), 1, 1), block=(_THREADS, 1, 1),
            args=[
                queries, numbers, table, codes if coded else queries, maxima, tiles, rows, info,
                over, features, row_codes if coded else rows, scale, own, found, lower, counts,
                len(queries), len(rows), len(maxima), lower.shape[1], stage,
                row_codes.shape[1] if coded else 0,
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


_COMMON = r"""
typedef long long i64;
struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
#define INFINITE __int_as_float(0x7f800000)

__device__ __forceinline__ float number(float x) { return x; }
__device__ __forceinline__ float number(f16 x) {
    float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y;
}
__device__ __forceinline__ float number(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

__device__ __forceinline__ void exchange(float& a, float& b) {
    const float least = fminf(a, b);
    b = fmaxf(a, b);
    a = least;
}
__device__ __forceinline__ float pick(float mine, float other, bool low) {
    return low ? fminf(mine, other) : fmaxf(mine, other);
}
template <typename Number> __device__ __forceinline__ Number total(Number x) {
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) x += __shfl_xor_sync(~0u, x, mask);
    return x;
}
// Number p of the sorted row is then x[p % ITEMS] of lane p / ITEMS.
__device__ __forceinline__ void sort_row(float (&x)[ITEMS], int lane) {
    SORT
    #pragma unroll 1
    for (int span = 2; span <= 32; span *= 2) {
        bool low = !(lane & (span / 2));
        #pragma unroll
        for (int i = 0; i < ITEMS / 2; ++i) {  // the other run in reverse: together they rise, then fall
            const float a = __shfl_xor_sync(~0u, x[ITEMS - 1 - i], span - 1);
            const float b = __shfl_xor_sync(~0u, x[i], span - 1);
            x[i] = pick(x[i], a, low);
            x[ITEMS - 1 - i] = pick(x[ITEMS - 1 - i], b, low);
        }
        if (ITEMS % 2) {
            const int i = ITEMS / 2;
            x[i] = pick(x[i], __shfl_xor_sync(~0u, x[i], span - 1), low);
        }
        #pragma unroll 1
        for (int mask = span / 4; mask; mask /= 2) {
            low = !(lane & mask);
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i) x[i] = pick(x[i], __shfl_xor_sync(~0u, x[i], mask), low);
        }
        MERGE
    }
}
template <typename Real>
__device__ __forceinline__ void load_row(float (&x)[ITEMS], const Real* row, int lane, float beyond) {
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int at = i * 32 + lane;
        x[i] = at < WIDTH ? number(row[at]) : beyond;
    }
}
"""

_SOURCES = {
    "score": r"""
extern "C" __global__ void __launch_bounds__(256) score(
    const LEFT* u, const RIGHT* v, const i64* which_u, const i64* which_v, double* out, int count,
    int step_u, int step_v, int numbered_u, int numbered_v)
{
    const int pair = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (pair >= count) return;
    const LEFT* left = u + (numbered_u ? which_u[pair] : (i64)pair * step_u) * WIDTH;
    const RIGHT* right = v + (numbered_v ? which_v[pair] : (i64)pair * step_v) * WIDTH;
    float x[ITEMS], sorted[ITEMS];
    double dot = 0, square_u = 0, square_v = 0;
    load_row(sorted, left, lane, 0);
    load_row(x, right, lane, 0);
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const double a = sorted[i], b = x[i];
        dot += a * b; square_u += a * a; square_v += b * b;
    }
    dot = total(dot); square_u = total(square_u); square_v = total(square_v);
    const double size = sqrt(square_u) * sqrt(square_v);
    // The sign is open where rounding could change it: then both bounds count.
    const int rounds = fabs(dot) < 3.6e-15 * size ? 3 : 2;
    double bound = 0, other = __longlong_as_double(0x7ff0000000000000LL);
    float sign = 1;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) if (i * 32 + lane >= WIDTH) sorted[i] = INFINITE;
    #pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        if (round == 0) {  // the left row, then the right one, or its negative
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i) x[i] = sorted[i];
        } else {
            load_row(x, right, lane, 0);
            sign = (dot < 0) == (round == 1) ? -1.0f : 1.0f;
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i) x[i] = i * 32 + lane < WIDTH ? sign * x[i] : INFINITE;
        }
        sort_row(x, lane);
        if (round == 0) {
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i) sorted[i] = x[i];
            continue;
        }
        double sum = 0;
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i)
            if (lane * ITEMS + i < WIDTH) sum += (double)sorted[i] * (double)x[i];
        sum = total(sum);
        if (round == 1) bound = sign * sum; else other = sign * sum;
    }
    if (lane == 0) {
        out[pair] = dot; out[(i64)count + pair] = bound; out[2 * (i64)count + pair] = other;
        out[3 * (i64)count + pair] = square_u; out[4 * (i64)count + pair] = square_v;
    }
}
""",
    "rank": r"""
// The best of the candidates of a query, in float64. A block takes a query, a warp a candidate.
extern "C" __global__ void __launch_bounds__(256) rank(
    const LEFT* queries, const RIGHT* rows, const float* floors, const int* found, const int* counts,
    double* best, i64* which, int* scored, int* flags, int room, int most, int sorts)
{
    extern __shared__ char memory[];
    double* scores = (double*)memory;
    int* numbers = (int*)(scores + room);
    float* ascending = (float*)(numbers + room);
    __shared__ int size;
    const int q = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const LEFT* query = queries + (i64)q * WIDTH;
    const int count = min(counts[q], room);
    float x[ITEMS];
    if (threadIdx.x == 0) size = 0;
    if (warp == 0 && sorts) {
        load_row(x, query, lane, INFINITE);
        sort_row(x, lane);
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) ascending[i * 32 + lane] = x[i];
    }
    __syncthreads();
    for (int a = threadIdx.x; a < count; a += 256) {
        const i64 at = (i64)q * room + a;
        if (__int_as_float(found[2 * at + 1]) >= floors[q]) numbers[atomicAdd(&size, 1)] = found[2 * at];
    }
    __syncthreads();
    for (int a = warp; a < size; a += 8) {
        load_row(x, rows + (i64)numbers[a] * WIDTH, lane, 0);
        double dot = 0, square_u = 0, square_v = 0, bound = 0;
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const int at = i * 32 + lane;
            const double u = at < WIDTH ? number(query[at]) : 0.0f, v = x[i];
            dot += u * v; square_u += u * u; square_v += v * v;
        }
        dot = total(dot);
        const double length = sqrt(total(square_u)) * sqrt(total(square_v));
        if (sorts) {
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i) if (i * 32 + lane >= WIDTH) x[i] = INFINITE;
            sort_row(x, lane);
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                if (lane * ITEMS + i < WIDTH) bound += (double)ascending[i * 32 + lane] * (double)x[i];
            bound = fabs(total(bound));
        } else bound = length;
        // Floors are positive, so nothing of another sign is among the best.
        if (lane == 0) {
            scores[a] = dot > 0 ? fmin(dot / (bound == 0 ? 1 : bound), 1.0) : -1;
            if (sorts && (bound < 8.9e-3 * length || fabs(dot) < 3.6e-15 * length)) atomicOr(flags + q, 2);
        }
    }
    __syncthreads();
    for (int a = threadIdx.x; a < size; a += 256) {
        int place = 0;
        for (int b = 0; b < size; ++b)
            place += scores[b] > scores[a] || (scores[b] == scores[a] && numbers[b] < numbers[a]);
        if (place < most) {
            best[(i64)q * most + place] = scores[a];
            which[(i64)q * most + place] = numbers[a];
        }
    }
    if (threadIdx.x == 0) {
        scored[q] = size;
        if (counts[q] > room) atomicOr(flags + q, 1);
    }
}
""",
    "describe": r"""
extern "C" __global__ void __launch_bounds__(256) describe(
    const RIGHT* v, const float* basis, double* squares, float* table, int count)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= count) return;
    float x[ITEMS];
    load_row(x, v + (i64)row * WIDTH, lane, 0);
    double square = 0;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) square += (double)x[i] * (double)x[i];
    square = total(square);
    const float over = square > 0 ? (float)(1 / sqrt(square)) : 0.0f;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) x[i] = i * 32 + lane < WIDTH ? x[i] * over : INFINITE;
    sort_row(x, lane);
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) if (lane * ITEMS + i >= WIDTH) x[i] = 0;
    #pragma unroll 1
    for (int r = 0; r < RANK; ++r) {
        float sum = 0;
        #pragma unroll
        for (int i = 0; i < ITEMS; ++i) sum += x[i] * basis[(r * ITEMS + i) * 32 + lane];
        sum = total(sum);
        if (lane == 0) table[(i64)row * RANK + r] = sum;
    }
    if (lane == 0) squares[row] = square;
}
""",
    "encode": r"""
__device__ __forceinline__ float store(signed char* code, float x, float over) {
    const int whole = __float2int_rn(x * over);
    *code = (signed char)whole;
    return (float)whole;
}
__device__ __forceinline__ float store(f16* code, float x, float over) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code->bits) : "f"(x));
    return number(*code);
}
__device__ __forceinline__ bool whole(signed char*) { return true; }
__device__ __forceinline__ bool whole(f16*) { return false; }

extern "C" __global__ void __launch_bounds__(256) encode(
    const RIGHT* v, const float* weight, CODES* codes, float* scale, float* lost, int count,
    int code_width)
{
    __shared__ unsigned most;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float unit = 1;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    if (whole(codes)) {
        float peak = 0;
        for (int j = warp; j < 64; j += 8) {
            const i64 row = (i64)blockIdx.x * 64 + j;
            if (row >= count) break;
            const float times = weight[row];
            #pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                if (i * 32 + lane < WIDTH)
                    peak = fmaxf(peak, fabsf(number(v[row * WIDTH + i * 32 + lane]) * times));
        }
        atomicMax(&most, __float_as_uint(peak));  // numbers that are not negative are ordered as bits
        __syncthreads();
        unit = __uint_as_float(most) / 127;
    }
    if (threadIdx.x == 0) scale[blockIdx.x] = unit;
    const float over = unit > 1e-30f ? 1 / unit : 0.0f;
    for (int j = warp; j < 64; j += 8) {
        const i64 row = (i64)blockIdx.x * 64 + j;
        const float times = row < count ? weight[row] : 0.0f;
        float rest = 0;
        for (int at = lane; at < code_width; at += 32) {
            const float x = row < count && at < WIDTH ? number(v[row * WIDTH + at]) * times : 0.0f;
            const float gone = x - unit * store(codes + row * code_width + at, x, over);
            rest += gone * gone;
        }
        rest = total(rest);
        if (lane == 0 && row < count) lost[row] = sqrtf(rest) * 1.00001f + 1e-6f;
    }
}
""",
    "sift": r"""
#define TILES 4     // of a block
#define EPSILON 0   // numbers of a query: what its codes lose,
#define MOST 1      // 1 + that,
#define SHARE 2     // its first coordinate,
#define REST 3      // what the first leaves of its profile,
#define FLOOR 4     // what a score has to reach,
#define KNOWN 5     // the maximum from which on a tile belongs to the first stage,
#define SCALE 6     // what its codes are to be multiplied with,
#define LAST 7      // what all coordinates leave of its profile

struct alignas(16) Sixteen { unsigned word[4]; };

__device__ __forceinline__ float products(const signed char* a, const signed char* b, int size, int lane) {
    int sum = 0;
    for (int at = lane * 16; at < size; at += 512) {
        const Sixteen x = *(const Sixteen*)(a + at), y = *(const Sixteen*)(b + at);
        #pragma unroll
        for (int i = 0; i < 4; ++i) sum = __dp4a((int)x.word[i], (int)y.word[i], sum);
    }
    return (float)__reduce_add_sync(~0u, sum);
}
__device__ __forceinline__ float products(const f16* a, const f16* b, int size, int lane) {
    float sum = 0;
    for (int at = lane * 8; at < size; at += 256) {
        const Sixteen x = *(const Sixteen*)(a + at), y = *(const Sixteen*)(b + at);
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const f16 low_x = {(unsigned short)x.word[i]}, high_x = {(unsigned short)(x.word[i] >> 16)};
            const f16 low_y = {(unsigned short)y.word[i]}, high_y = {(unsigned short)(y.word[i] >> 16)};
            sum += number(low_x) * number(low_y) + number(high_x) * number(high_y);
        }
    }
    return total(sum);
}

extern "C" __global__ void __launch_bounds__(256) sift(
    const float* queries, const float* numbers, const float* table, const CODES* codes,
    const float* maxima, const float* tiles, const RIGHT* rows, const float* info,
    const float* over, const float* features, const CODES* row_codes, const float* scale,
    const i64* own, int* found, float* lower, int* counts,
    int query_count, int row_count, int tile_count, int room, int stage, int code_width)
{
    __shared__ int alive[TILES][256];
    __shared__ int sizes[TILES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = blockIdx.x * TILES;
    const float doubt = (ITEMS + 16) * 1.2e-7f;  // of a product in float32
    #define OF(what, q) numbers[(what) * query_count + (q)]
    for (int start = 0; start < query_count; start += 256) {
        if (threadIdx.x < TILES) sizes[threadIdx.x] = 0;
        __syncthreads();
        const int q = start + threadIdx.x;
        if (q < query_count) {
            const float known = OF(KNOWN, q), floor = OF(FLOOR, q);
            const float least = floor * OF(SHARE, q), rest = floor * OF(REST, q);
            const float epsilon = OF(EPSILON, q), most = OF(MOST, q);
            #pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const i64 tile = first + t;
                if (tile >= tile_count) break;
                const float largest = maxima[tile * query_count + q];
                const float* its = tiles + 4 * tile;
                bool open = largest >= known;
                if (stage) open = !open && !(largest + epsilon * its[0] + most * its[1] + rest * its[2] < least);
                if (open && floor <= 1) alive[t][atomicAdd(sizes + t, 1)] = q;
            }
        }
        __syncthreads();
        for (int t = 0; t < TILES; ++t) {
            const int size = sizes[t];
            if (!size) continue;
            const i64 tile = first + t;
            for (int j = warp; j < 64; j += 8) {
                const i64 row = tile * 64 + j;
                if (row >= row_count) break;
                const float times = over[row];
                if (times == 0) continue;  // zeros, or not to be found
                const float4 mine = ((const float4*)info)[row];
                for (int a = 0; a < size; ++a) {
                    const int q = alive[t][a];
                    const float floor = OF(FLOOR, q);
                    if (CODED) {
                        const float about = OF(SCALE, q) * scale[tile] * products(
                            codes + (i64)q * code_width, row_codes + row * code_width, code_width, lane);
                        const float slack =
                            OF(EPSILON, q) * mine.y + OF(MOST, q) * mine.z + floor * OF(REST, q) * mine.w;
                        if (about + slack < floor * OF(SHARE, q)) continue;
                    }
                    float dot = 0;
                    #pragma unroll
                    for (int i = 0; i < ITEMS; ++i) {
                        const int at = i * 32 + lane;
                        if (at < WIDTH) dot += queries[(i64)q * WIDTH + at] * (number(rows[row * WIDTH + at]) * times);
                    }
                    dot = total(dot);
                    float bound = 0;
                    for (int r = lane; r < RANK; r += 32)
                        bound += table[(i64)q * (RANK + 1) + r] * features[row * (RANK + 1) + r];
                    bound = total(bound);
                    const float open = OF(LAST, q) * features[row * (RANK + 1) + RANK];
                    const float low = dot - doubt, high = dot + doubt;
                    const float upper = (bound - open > high ? high / (bound - open) : 1.0f) * 1.000001f;
                    if (high < 0 || upper < floor || own[q] == row) continue;
                    if (lane == 0) {
                        const int place = atomicAdd(counts + q, 1);
                        if (place < room) {
                            const i64 at = (i64)q * room + place;
                            found[2 * at] = (int)row;
                            found[2 * at + 1] = __float_as_int(upper);
                            lower[at] = low > 0 ? low / fmaxf(low, fminf(1.0f, bound + open)) * 0.999999f : -1.0f;
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
}
""",
}

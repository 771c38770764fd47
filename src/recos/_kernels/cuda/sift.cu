#define TILES 4     // of a block
#define AT_ONCE 4096  // queries that are listed together
#define EPSILON 0   // numbers of a query: what its codes lose,
#define MOST 1      // 1 + that,
#define SHARE 2     // its first coordinate,
#define REST 3      // what the first leaves of its profile,
#define FLOOR 4     // what a score has to reach,
#define KNOWN 5     // the maximum from which on a tile belongs to the first stage,
#define SCALE 6     // what its codes are to be multiplied with,
#define LAST 7      // what all coordinates leave of its profile

struct alignas(16) Sixteen { unsigned word[4]; };

// Products of 16 rows with 8 queries, summed over 32 bytes of each, by the tensor cores.
__device__ __forceinline__ void multiply(
    int (&sum)[4], unsigned a, unsigned b, unsigned c, unsigned d, unsigned x, unsigned y, signed char)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "r"(x), "r"(y));
}
__device__ __forceinline__ void multiply(
    float (&sum)[4], unsigned a, unsigned b, unsigned c, unsigned d, unsigned x, unsigned y, f16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "r"(x), "r"(y));
}
__device__ __forceinline__ void multiply(
    float (&sum)[4], unsigned a, unsigned b, unsigned c, unsigned d, unsigned x, unsigned y, bf16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a), "r"(b), "r"(c), "r"(d), "r"(x), "r"(y));
}
__device__ __forceinline__ int zero(signed char) { return 0; }
__device__ __forceinline__ float zero(f16) { return 0; }
__device__ __forceinline__ float zero(bf16) { return 0; }

// A block takes some tiles: it lists the queries that may find something there, a warp multiplies
// eight of them with a tile again, and looks at the pairs that this does not rule out.
extern "C" __global__ void __launch_bounds__(256) sift(
    const float* queries, const float* numbers, const float* table, const CODES* codes,
    const float* maxima, const float* tiles, const RIGHT* rows, const float* info,
    const float* over, const float* features, const CODES* row_codes, const float* scale,
    const i64* own, int* found, float* lower, int* counts,
    int query_count, int row_count, int tile_count, int room, int stage, int code_width)
{
    __shared__ unsigned short alive[TILES][AT_ONCE];
    __shared__ int sizes[TILES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = blockIdx.x * TILES;
    const float doubt = (ITEMS + 16) * 1.2e-7f;  // of a product in float32
    const i64 stride = (i64)code_width * sizeof(CODES);
    const int place = lane / 4, part = lane % 4;  // as the tensor cores lay out their factors
    #define OF(what, q) numbers[(what) * query_count + (q)]
    for (int start = 0; start < query_count; start += AT_ONCE) {
        if (threadIdx.x < TILES) sizes[threadIdx.x] = 0;
        __syncthreads();
        for (int mine = start + threadIdx.x; mine < min(query_count, start + AT_ONCE); mine += 256) {
            const float known = OF(KNOWN, mine), floor = OF(FLOOR, mine);
            const float least = floor * OF(SHARE, mine), rest = floor * OF(REST, mine);
            const float epsilon = OF(EPSILON, mine), most = OF(MOST, mine);
            #pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const i64 tile = first + t;
                if (tile >= tile_count) break;
                const float largest = maxima[tile * query_count + mine];
                const float* its = tiles + 4 * tile;
                bool open = largest >= known;
                if (stage)
                    open = !open
                        && !(largest + epsilon * its[0] + most * its[1] + rest * its[2] < least);
                if (open && floor <= 1) alive[t][atomicAdd(sizes + t, 1)] = mine - start;
            }
        }
        __syncthreads();
        for (int item = warp;; item += 8) {
            int t = 0, group = item;
            while (t < TILES && group >= (sizes[t] + 7) / 8 * 2) group -= (sizes[t++] + 7) / 8 * 2;
            if (t == TILES) break;
            const int size = sizes[t];
            const i64 base = (i64)(first + t) * 64 + group % 2 * 32;  // half of the tile
            group /= 2;
            const char* right = (const char*)codes
                + (start + alive[t][min(group * 8 + place, size - 1)]) * stride + 16 * part;
            const char* left[4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                const i64 row = base + i * 8 + place;
                left[i] = (const char*)row_codes + (CODED ? row : min(row, (i64)row_count - 1)) * stride + 16 * part;
            }
            decltype(zero(CODES())) sums[2][4] = {};
            for (int at = 0; at < stride; at += 64) {
                // Of every 64 bytes a lane holds 16 in a row: in another order than the instruction
                // says, but in the same of both factors.
                const Sixteen y = *(const Sixteen*)(right + at);
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const Sixteen a = *(const Sixteen*)(left[2 * i] + at), b = *(const Sixteen*)(left[2 * i + 1] + at);
                    multiply(sums[i], a.word[0], b.word[0], a.word[1], b.word[1], y.word[0], y.word[1], CODES());
                    multiply(sums[i], a.word[2], b.word[2], a.word[3], b.word[3], y.word[2], y.word[3], CODES());
                }
            }
            unsigned left_over = 0;  // a bit for each sum of this lane
            #pragma unroll
            for (int c = 0; c < 2; ++c) {
                const int column = group * 8 + 2 * part + c;
                if (column >= size) continue;
                const int q = start + alive[t][column];
                const float floor = OF(FLOOR, q), epsilon = OF(EPSILON, q), most = OF(MOST, q);
                const float rest = floor * OF(REST, q), least = floor * OF(SHARE, q);
                const float times = CODED ? OF(SCALE, q) * scale[first + t] : 1.0f;
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const i64 row = base + i * 8 + place;
                    if (row >= row_count) continue;
                    const float4 its = ((const float4*)info)[row];
                    const float about = (float)sums[i / 2][2 * (i % 2) + c] * (CODED ? times : its.x);
                    if (!(about + epsilon * its.y + most * its.z + rest * its.w < least))
                        left_over |= 1u << (i * 2 + c);
                }
            }
            for (unsigned lanes; (lanes = __ballot_sync(~0u, left_over != 0));) {
                const int from = __ffs(lanes) - 1;
                const int bit = __ffs(__shfl_sync(~0u, left_over, from)) - 1;
                if (lane == from) left_over &= left_over - 1;
                const i64 row = base + bit / 2 * 8 + from / 4;
                const int q = start + alive[t][group * 8 + 2 * (from % 4) + bit % 2];
                const float times = over[row], floor = OF(FLOOR, q);
                if (times == 0 || own[q] == row) continue;  // zeros, or not to be found
                float dot = 0, bound = 0;
                #pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    const int at = i * 32 + lane;
                    if (at < WIDTH) dot += queries[(i64)q * WIDTH + at] * (number(rows[row * WIDTH + at]) * times);
                }
                for (int r = lane; r < RANK; r += 32)
                    bound += table[(i64)q * (RANK + 1) + r] * features[row * (RANK + 1) + r];
                dot = total(dot);
                bound = total(bound);
                const float open = OF(LAST, q) * features[row * (RANK + 1) + RANK];
                const float low = dot - doubt, high = dot + doubt;
                const float upper = (bound - open > high ? high / (bound - open) : 1.0f) * 1.000001f;
                if (high < 0 || upper < floor || lane) continue;
                const int next = atomicAdd(counts + q, 1);
                if (next >= room) continue;
                const i64 at = (i64)q * room + next;
                found[2 * at] = (int)row;
                found[2 * at + 1] = __float_as_int(upper);
                lower[at] = low > 0 ? low / fmaxf(low, fminf(1.0f, bound + open)) * 0.999999f : -1.0f;
            }
        }
        __syncthreads();
    }
}

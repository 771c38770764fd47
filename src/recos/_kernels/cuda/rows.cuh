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

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

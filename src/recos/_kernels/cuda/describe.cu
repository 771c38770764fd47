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

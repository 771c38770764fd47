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

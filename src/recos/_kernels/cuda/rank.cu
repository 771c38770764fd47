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

// spread on the card: see ops/spread.c. One block, whose threads take every THREADS-th sample.
#include "cuda/cuda.cuh"

extern "C" {
#include "base/rng.h"
}

enum { THREADS = 1024 };

CUDA_FN double value_at(step now, view table, uint64_t at, int64_t further) {
    return (double)view_load(table, (int64_t)step_sample(now.cursor, at) + further);
}

static __global__ void __launch_bounds__(THREADS)
    forward_kernel(step now, view table, spread_attr a, int64_t stride, float *out) {
    cuda_begin();
    __shared__ double room[32];
    const step_cursor *s = now.cursor;
    int64_t left = (int64_t)(s->count - s->position), samples = left < a.rows ? left : a.rows, n = samples * a.steps;
    double first = value_at(now, table, 0, 0), sum = 0, square = 0;
    for (int64_t k = threadIdx.x; k < n; k += THREADS) {
        uint64_t at = s->position + (uint64_t)(k / a.steps);
        if (s->shuffle) at = rng_permute(now.progress->seed, s->epoch, at, s->count);
        double v = value_at(now, table, at, k % a.steps * stride) - first;
        sum += v;
        square += v * v;
    }
    sum = block_sum(sum, room);
    square = block_sum(square, room);
    if (threadIdx.x) return;
    double mean = sum / (double)n, variance = n > 1 ? (square - mean * sum) / (double)(n - 1) : 0;
    out[0] = n > 1 ? (float)(mean + first) : 0;
    out[1] = n > 1 ? (float)(1 / (sqrt(variance > 0 ? variance : 0) + 1e-8)) : 1;
}

static void forward(const call *c) {
    spread_attr a = *(const spread_attr *)c->attr;
    LAUNCH_EARLY(c, forward_kernel, 1, THREADS, 0, c->step, view_of(&c->in[0]), a, operand_count(&c->in[0]) / a.steps,
        (float *)c->out[0].data);
}

extern "C" const kernel cuda_spread = {forward, NULL, NULL, NULL};

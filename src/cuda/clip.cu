// clip on the card: see ops/clip.c. Squares are summed by a fixed number of blocks, their sums by one.
#include "cuda/cuda.cuh"

enum { BLOCKS = 256, THREADS = 256 };

static __global__ void square_kernel(const float *g, int64_t n, double *part) {
    __shared__ double room[32];
    double sum = 0;
    FOR_EACH(i, n) sum += (double)g[i] * (double)g[i];
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static __global__ void factor_kernel(const double *part, const double *totals, float max_norm, double *out) {
    __shared__ double room[32];
    double square = block_sum(part[threadIdx.x], room);
    if (threadIdx.x) return;
    double normaliser = totals[TALLY_STEP_NORM], norm = sqrt(square);
    if (normaliser > 0) norm /= normaliser;
    double shrink = max_norm > 0 ? (double)max_norm / (norm + 1e-6) : 1;
    out[CLIP_NORM] = norm;
    out[CLIP_FACTOR] = normaliser > 0 && isfinite(norm) ? (shrink < 1 ? shrink : 1) / normaliser : 0;
    if (!isfinite(norm)) out[CLIP_NONFINITE] += 1;
}

static void forward(const call *c) {
    double *part = (double *)c->scratch;
    LAUNCH(c, square_kernel, BLOCKS, THREADS, 0, (const float *)c->in[1].data, operand_count(&c->in[1]), part);
    LAUNCH(c, factor_kernel, 1, BLOCKS, 0, part, (const double *)c->in[0].data, ((const clip_attr *)c->attr)->max_norm,
        (double *)c->out[0].data);
}

static size_t scratch(const call *c) {
    (void)c;
    return BLOCKS * sizeof(double);
}

extern "C" const kernel cuda_clip = {forward, NULL, scratch, NULL};

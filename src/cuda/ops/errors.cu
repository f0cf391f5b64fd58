// errors on the card: see ops/errors.c. One block, whose threads take rows in turn: sums have a fixed order, and
// forecasts are few.
#include "cuda/cuda.cuh"

enum { THREADS = 512 };

struct errors_args {
    view prediction, target, weight, scale;
    double *state;
    int64_t B, H;
};

CUDA_FN void add_row(const errors_args &a, int64_t b, double *sums) {
    double weight = (double)view_load(a.weight, b), absolute = 0, square = 0, smape = 0;
    float scale = a.scale.data ? view_load(a.scale, b) : 0;
    if (weight == 0) return;
    for (int64_t i = b * a.H; i < (b + 1) * a.H; i++) {
        float p = view_load(a.prediction, i), t = view_load(a.target, i), e = fabsf(p - t), size = fabsf(p) + fabsf(t);
        absolute += (double)e;
        square += (double)e * (double)e;
        smape += size != 0 ? (double)(200 * e / size) : 0;
    }
    sums[ERRORS_WEIGHT] += weight * (double)a.H;
    sums[ERRORS_ABSOLUTE] += weight * absolute;
    sums[ERRORS_SQUARE] += weight * square;
    sums[ERRORS_SMAPE] += weight * smape;
    if (!(scale > 0)) return;
    sums[ERRORS_SCALED] += weight * (absolute / (double)scale);
    sums[ERRORS_SCALED_WEIGHT] += weight * (double)a.H;
}

static __global__ void __launch_bounds__(THREADS) forward_kernel(const __grid_constant__ errors_args a) {
    __shared__ double room[32];
    double sums[ERRORS_COUNT] = {};
    for (int64_t b = threadIdx.x; b < a.B; b += THREADS) add_row(a, b, sums);
#pragma unroll
    for (int k = 0; k < ERRORS_COUNT; k++) {
        double sum = block_sum(sums[k], room);
        if (threadIdx.x == 0) a.state[k] += sum;
    }
}

static void forward(const call *c) {
    errors_args a = {view_of(&c->in[0]), view_of(&c->in[1]), view_of(&c->in[2]), view_of(&c->in[3]),
        (double *)c->out[0].data, c->in[0].shape.dim[0], c->in[0].shape.dim[1]};
    LAUNCH(c, forward_kernel, 1, THREADS, 0, a);
}

extern "C" const kernel cuda_errors = {forward, NULL, NULL, NULL};

// sequence on the card: see ops/sequence.c.
#include "cuda/cuda.cuh"

static __global__ void forward_kernel(
    view table, const int32_t *index, view out, int64_t T, int64_t N, int64_t C, int64_t n) {
    FOR_EACH(i, n) {
        int64_t b = i / (T * C), t = i / C % T;
        view_store(out, i, view_load(table, (t * N + index[b]) * C + i % C));
    }
}

static void forward(const call *c) {
    int64_t T = c->out[0].shape.dim[1], N = c->in[0].shape.dim[0] / T, C = operand_count(&c->in[0]) / (T * N),
            n = operand_count(&c->out[0]);
    LAUNCH(c, forward_kernel, blocks_for(n, 256), 256, 0, view_of(&c->in[0]), (const int32_t *)c->in[1].data,
        view_of(&c->out[0]), T, N, C, n);
}

extern "C" const kernel cuda_sequence = {forward, NULL, NULL, NULL};

// dropout on the card: see ops/dropout.c. The random bits are those of the CPU. A thread does the four elements of a
// random block, at once where rows are multiples of four wide.
#include "cuda/dropout.cuh"

CUDA_FN void drop_some(const drop_args &a, const view &from, const view &to, int64_t k, const quad &factor) {
    int64_t row = drop_row(a, k), column = (k - row * a.quads) * QUAD;
    for (int64_t i = 0; i < QUAD && column + i < a.n; i++) {
        int64_t at = row * a.n + column + i;
        view_put(to, at, factor.v[i] != 0 ? view_load(from, at) * factor.v[i] : 0.0f);
    }
}

static __global__ void apply_kernel(const __grid_constant__ drop_args a, view from, view to) {
    cuda_begin();
    step s = drop_step(a);
    bool whole = a.n % QUAD == 0;
    FOR_EACH(k, a.rows * a.quads) {
        quad x = whole ? quad_load(from, k * QUAD) : quad{};
        quad factor = drop_factors(a, s, k);
        if (whole) {
            quad_put(to, k * QUAD, drop(x, factor));
        } else {
            drop_some(a, from, to, k, factor);
        }
    }
}

static __global__ void copy_kernel(view from, view to, int64_t n) {
    cuda_begin();
    FOR_EACH(i, n / QUAD) quad_store(to, i * QUAD, quad_load(from, i * QUAD));
    FOR_EACH(i, n % QUAD) view_store(to, n - 1 - i, view_load(from, n - 1 - i));
}

static void apply(const call *c, const operand *from, const operand *to) {
    drop_args a = drop_args_of(c);
    LAUNCH_EARLY(c, apply_kernel, blocks_for(a.rows * a.quads, 256), 256, 0, a, view_of(from), view_of(to));
}

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[0]);
    if (c->training) {
        apply(c, &c->in[0], &c->out[0]);
    } else {
        LAUNCH_EARLY(c, copy_kernel, blocks_for(n / QUAD, 256), 256, 0, view_of(&c->in[0]), view_of(&c->out[0]), n);
    }
}

static void backward(const call *c) {
    apply(c, &c->dout[0], &c->din[0]);
}

extern "C" const kernel cuda_dropout = {forward, backward, NULL, NULL};

// dropout on the card: see ops/dropout.c. The random bits are those of the CPU. A thread does the eight elements of a
// random block, at once where rows are multiples of eight wide.
#include "cuda/ops/dropout.cuh"
#include "cuda/run.cuh"

static __global__ void apply_kernel(const __grid_constant__ drop_args a, view from, view to) {
    cuda_begin();
    random_key s = random_key_of(a.at);
    FOR_EACH(k, a.rows * a.n / RUN) {
        alignas(16) float v[RUN];
        run_load(v, from, k * RUN);
        rng_block r = drop_draw(a, s, drop_place_of(a, k * RUN));
#pragma unroll
        for (int e = 0; e < RUN; e++) v[e] = drop_one(a, r.v, e, v[e]);
        run_put(to, k * RUN, v);
    }
}

// Rows of any width, and any number of elements.
static __global__ void apply_any(const __grid_constant__ drop_args a, view from, view to, int64_t octets) {
    cuda_begin();
    random_key s = random_key_of(a.at);
    FOR_EACH(k, a.rows * octets) {
        drop_place p = {k / octets, k % octets * RUN};
        rng_block r = drop_draw(a, s, p);
#pragma unroll
        for (int e = 0; e < RUN; e++) {
            int64_t at = p.row * a.n + p.column + e;
            if (p.column + e < a.n) view_put(to, at, drop_one(a, r.v, e, view_load(from, at)));
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
    int64_t octets = (a.n + RUN - 1) / RUN;
    unsigned blocks = blocks_for(a.rows * octets, 256);
    if (a.n % RUN || !a.small) {
        LAUNCH_EARLY(c, apply_any, blocks, 256, 0, a, view_of(from), view_of(to), octets);
    } else {
        LAUNCH_EARLY(c, apply_kernel, blocks, 256, 0, a, view_of(from), view_of(to));
    }
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

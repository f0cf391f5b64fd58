// axpby on the card: see ops/axpby.c. Four elements a thread, and what is left over one by one.
#include "cuda/quad.cuh"

static __global__ void forward_kernel(view x, view y, view z, float a, float b, int64_t n) {
    cuda_begin();
    FOR_EACH(i, n / QUAD) {
        quad v = quad_times(quad_load(x, i * QUAD), a);
        if (y.data) v = quad_add(v, quad_times(quad_load(y, i * QUAD), b));
        quad_store(z, i * QUAD, v);
    }
    FOR_EACH(k, n % QUAD) {
        int64_t i = n - 1 - k;
        view_store(z, i, a * view_load(x, i) + (y.data ? b * view_load(y, i) : 0.0f));
    }
}

// x and y may be the same tensor: dx is written before dy is added to it, element by element.
static __global__ void backward_kernel(view dx, view dy, view dz, float a, float b, int64_t n) {
    cuda_begin();
    FOR_EACH(i, n / QUAD) {
        quad d = quad_load(dz, i * QUAD);
        if (dx.data) quad_put(dx, i * QUAD, quad_times(d, a));
        if (dy.data) quad_put(dy, i * QUAD, quad_times(d, b));
    }
    FOR_EACH(k, n % QUAD) {
        int64_t i = n - 1 - k;
        float d = view_load(dz, i);
        if (dx.data) view_put(dx, i, a * d);
        if (dy.data) view_put(dy, i, b * d);
    }
}

static void forward(const call *c) {
    const axpby_attr *k = (const axpby_attr *)c->attr;
    int64_t n = operand_count(&c->out[0]);
    LAUNCH_EARLY(c, forward_kernel, blocks_for(n / QUAD, 256), 256, 0, view_of(&c->in[0]), view_of(&c->in[1]),
        view_of(&c->out[0]), k->a, k->b, n);
}

static void backward(const call *c) {
    const axpby_attr *k = (const axpby_attr *)c->attr;
    int64_t n = operand_count(&c->out[0]);
    LAUNCH_EARLY(c, backward_kernel, blocks_for(n / QUAD, 256), 256, 0, view_of(&c->din[0]), view_of(&c->din[1]),
        view_of(&c->dout[0]), k->a, k->b, n);
}

extern "C" const kernel cuda_axpby = {forward, backward, NULL, NULL};

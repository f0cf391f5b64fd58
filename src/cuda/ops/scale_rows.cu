// scale_rows on the card: see ops/scale_rows.c.
#include "cuda/cuda.cuh"

static __global__ void apply_kernel(view from, view scale, view to, scale_rows_settings a, int64_t count, int64_t n) {
    FOR_EACH(i, count) {
        float v = view_load(from, i), by = scale.data ? view_load(scale, i / n) : 1.0f;
        view_put(to, i, a.divide ? (v / by - a.shift) / a.factor : (a.factor * v + a.shift) * by);
    }
}

static void apply(const call *c, const operand *from, const operand *to, scale_rows_settings a) {
    int64_t count = operand_count(&c->in[0]);
    LAUNCH(c, apply_kernel, blocks_for(count, 256), 256, 0, view_of(from), view_of(&c->in[1]), view_of(to), a, count,
        count / c->in[0].shape.dim[0]);
}

static void forward(const call *c) {
    apply(c, &c->in[0], &c->out[0], *(const scale_rows_settings *)c->attr);
}

// Rows of a gradient have no shift.
static void backward(const call *c) {
    scale_rows_settings a = *(const scale_rows_settings *)c->attr;
    a.shift = 0;
    apply(c, &c->dout[0], &c->din[0], a);
}

extern "C" const kernel cuda_scale_rows = {forward, backward, NULL, NULL};

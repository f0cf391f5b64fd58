// mean_time: the mean over the steps of a sequence; with a mask, over the steps where it is not 0 (none: zero).
//   x [B, T, C], mask [B, T] or none -> y [B, C]
#include "ops/op.h"

#ifdef OP_RULES

tensor op_mean_time(graph *g, tensor x, tensor mask) {
    shape s = op_shape(g, x);
    CHECK(s.rank == 3, "mean_time: x needs 3 dimensions");
    CHECK(!mask.id || shape_equal(op_shape(g, mask), shape2(s.dim[0], s.dim[1])), "mean_time: mask does not fit");
    node *n = OP_NODE(g, mean_time, x, mask);
    n->flows = 1;
    n->needs = NEEDS_INPUT(1);
    return graph_output_add(g, n, DTYPE_F32, shape2(s.dim[0], s.dim[2]));
}

#else

static real share(const call *c, int64_t b) {
    const real *mask = c->in[1].data;
    int64_t T = c->in[0].shape.dim[1], steps = mask ? 0 : T;
    for (int64_t t = 0; mask && t < T; t++) steps += mask[b * T + t] != 0;
    return steps ? (real)1 / (real)steps : 0;
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t T = c->in[0].shape.dim[1], C = c->in[0].shape.dim[2];
    const real *mask = c->in[1].data;
    for (int64_t b = begin; b < end; b++) {
        const real *x = (const real *)c->in[0].data + b * T * C;
        real *y = (real *)c->out[0].data + b * C, part = share(c, b);
        for (int64_t i = 0; i < C; i++) y[i] = 0;
        for (int64_t t = 0; t < T; t++)
            for (int64_t i = 0; i < C && (!mask || mask[b * T + t] != 0); i++) y[i] += x[t * C + i];
        for (int64_t i = 0; i < C; i++) y[i] *= part;
    }
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t T = c->in[0].shape.dim[1], C = c->in[0].shape.dim[2];
    const real *mask = c->in[1].data;
    for (int64_t b = begin; b < end; b++) {
        const real *dy = (const real *)c->dout[0].data + b * C;
        real part = share(c, b);
        for (int64_t t = 0; t < T; t++) {
            real p = !mask || mask[b * T + t] != 0 ? part : 0;
            for (int64_t i = 0; i < C; i++) op_put(&c->din[0], (b * T + t) * C + i, dy[i] * p);
        }
    }
}

static int64_t row_work(const call *c) {
    return c->in[0].shape.dim[1] * c->in[0].shape.dim[2];
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], row_work(c), forward_rows);
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], row_work(c), backward_rows);
}

const kernel KERNEL(mean_time) = {forward, backward, NULL, NULL};

#endif

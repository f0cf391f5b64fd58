// axpby: a x + b y, element by element; with no y, a x. Addition, subtraction and scaling in one.
//   x, y of one shape -> that shape
#include "ops/op.h"

#ifdef OP_RULES

tensor op_axpby(graph *g, tensor x, tensor y, float a, float b) {
    CHECK(!y.id || shape_equal(op_shape(g, x), op_shape(g, y)), "axpby: shapes differ");
    node *n = OP_NODE(g, axpby, x, y);
    axpby_attr at = {a, b};
    graph_attr_add(g, n, &at, sizeof at);
    n->flows = 3;
    return graph_output_add(g, n, DTYPE_F32, op_shape(g, x));
}

#else

static void forward_range(const call *c, int64_t begin, int64_t end) {
    const axpby_attr *at = c->attr;
    const real *x = c->in[0].data, *y = c->in[1].data;
    real *z = c->out[0].data;
    for (int64_t i = begin; i < end; i++) z[i] = (real)at->a * x[i] + (y ? (real)at->b * y[i] : 0);
}

static void backward_range(const call *c, int64_t begin, int64_t end) {
    const axpby_attr *at = c->attr;
    const real *dz = c->dout[0].data;
    for (int64_t i = begin; c->din[0].data && i < end; i++) op_put(&c->din[0], i, (real)at->a * dz[i]);
    for (int64_t i = begin; c->din[1].data && i < end; i++) op_put(&c->din[1], i, (real)at->b * dz[i]);
}

static void forward(const call *c) {
    op_for(c, operand_count(&c->out[0]), 1, forward_range);
}

static void backward(const call *c) {
    op_for(c, operand_count(&c->out[0]), 1, backward_range);
}

const kernel KERNEL(axpby) = {forward, backward, NULL, NULL};

#endif

// scale_rows: every row multiplied with, or divided by, a number of its own.
//   x [B, ...], scale [B] -> y, of the shape of x
// No gradient flows to the scale. A row is not to be divided by 0.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_scale_rows(graph *g, tensor x, tensor scale, bool divide) {
    shape s = op_shape(g, x);
    CHECK(s.rank > 1 && shape_equal(op_shape(g, scale), shape1(s.dim[0])), "scale_rows: scales do not fit");
    node *n = OP_NODE(g, scale_rows, x, scale);
    scale_rows_attr a = {divide};
    graph_attr_add(g, n, &a, sizeof a);
    n->flows = 1;
    n->needs = NEEDS_INPUT(1);
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

static void apply(const call *c, const operand *from, const operand *to, int64_t begin, int64_t end) {
    bool divide = ((const scale_rows_attr *)c->attr)->divide;
    int64_t n = operand_count(&c->in[0]) / c->in[0].shape.dim[0];
    const real *x = from->data, *scale = c->in[1].data;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = b * n; i < (b + 1) * n; i++) op_put(to, i, divide ? x[i] / scale[b] : x[i] * scale[b]);
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->in[0], &c->out[0], begin, end);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->dout[0], &c->din[0], begin, end);
}

static void forward(const call *c) {
    int64_t B = c->in[0].shape.dim[0];
    op_for(c, B, operand_count(&c->in[0]) / B, forward_rows);
}

static void backward(const call *c) {
    int64_t B = c->in[0].shape.dim[0];
    op_for(c, B, operand_count(&c->in[0]) / B, backward_rows);
}

const kernel KERNEL(scale_rows) = {forward, backward, NULL, NULL};

#endif

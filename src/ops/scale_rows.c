// scale_rows: every row multiplied with a number of its own, behind a factor and a shift that all rows share.
//   x [B, ...], scale [B] or none -> y, of the shape of x: (factor x + shift) scale
// With `divide` the way back: (x / scale - shift) / factor. No gradient flows to the scale. Neither factor nor, where
// rows are divided, a scale may be 0.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_scale_rows(graph *g, tensor x, tensor scale, scale_rows_settings settings) {
    shape s = op_shape(g, x);
    CHECK(s.rank > 1, "scale_rows: x has no rows");
    CHECK(!scale.id || shape_equal(op_shape(g, scale), shape1(s.dim[0])), "scale_rows: scales do not fit");
    CHECK(settings.factor != 0, "scale_rows: a factor of 0");
    node *n = OP_NODE(g, scale_rows, x, scale);
    graph_attr_add(g, n, &settings, sizeof settings);
    n->flows = 1;
    n->needs = NEEDS_INPUT(1);
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

// Rows of a gradient have no shift.
static void apply(const call *c, const operand *from, const operand *to, bool shifted, int64_t begin, int64_t end) {
    const scale_rows_settings *a = c->attr;
    int64_t n = operand_count(&c->in[0]) / c->in[0].shape.dim[0];
    const real *x = from->data, *scale = c->in[1].data;
    real factor = (real)a->factor, shift = shifted ? (real)a->shift : 0;
    for (int64_t b = begin; b < end; b++) {
        real by = scale ? scale[b] : 1;
        for (int64_t i = b * n; i < (b + 1) * n; i++)
            op_put(to, i, a->divide ? (x[i] / by - shift) / factor : (factor * x[i] + shift) * by);
    }
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->in[0], &c->out[0], true, begin, end);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->dout[0], &c->din[0], false, begin, end);
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

// layernorm: y = (x - mean) / sqrt(variance + eps) * gain + bias, over the last dimension; the variance is the biased
// one.
//   x [..., C], gain [C], bias [C] -> y [..., C]
// Statistics are taken of x minus the row's first value, so that a row of raw prices around 10^4 loses no digits.
// Backward recomputes them from x.
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_layernorm(graph *g, tensor x, tensor gain, tensor bias, float eps) {
    shape s = op_shape(g, x);
    CHECK(shape_equal(op_shape(g, gain), shape1(shape_last(s))), "layernorm: gain does not fit");
    CHECK(shape_equal(op_shape(g, bias), shape1(shape_last(s))), "layernorm: bias does not fit");
    node *n = OP_NODE(g, layernorm, x, gain, bias);
    layernorm_attr a = {eps};
    graph_attr_add(g, n, &a, sizeof a);
    n->flows = 7;
    n->needs = NEEDS_INPUT(0) | NEEDS_INPUT(1);
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

typedef struct {
    real mean, scale; // of x minus its row's first value; 1 / sqrt(variance + eps)
} moments;

static moments moments_of(const real *x, int64_t C, real eps) {
    real sum = 0, square = 0;
    for (int64_t i = 0; i < C; i++) sum += x[i] - x[0];
    real mean = sum / (real)C;
    for (int64_t i = 0; i < C; i++) {
        real d = x[i] - x[0] - mean;
        square += d * d;
    }
    return (moments){mean, (real)(1 / sqrt((double)(square / (real)C + eps)))};
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const layernorm_attr *a = c->attr;
    int64_t C = operand_width(&c->in[0]);
    const real *gain = c->in[1].data, *bias = c->in[2].data;
    for (int64_t r = begin; r < end; r++) {
        const real *x = (const real *)c->in[0].data + r * C;
        real *y = (real *)c->out[0].data + r * C;
        moments m = moments_of(x, C, (real)a->eps);
        for (int64_t i = 0; i < C; i++) y[i] = (x[i] - x[0] - m.mean) * m.scale * gain[i] + bias[i];
    }
}

static void forward(const call *c) {
    op_for(c, operand_rows(&c->in[0]), operand_width(&c->in[0]), forward_rows);
}

// dx of rows begin..end, and each row's moments into scratch for the second pass.
static void backward_rows(const call *c, int64_t begin, int64_t end) {
    const layernorm_attr *a = c->attr;
    int64_t C = operand_width(&c->in[0]);
    const real *gain = c->in[1].data;
    for (int64_t r = begin; r < end; r++) {
        const real *x = (const real *)c->in[0].data + r * C, *dy = (const real *)c->dout[0].data + r * C;
        moments m = moments_of(x, C, (real)a->eps);
        ((moments *)c->scratch)[r] = m;
        real sum = 0, dot = 0;
        for (int64_t i = 0; i < C; i++) {
            real d = dy[i] * gain[i];
            sum += d;
            dot += d * (x[i] - x[0] - m.mean) * m.scale;
        }
        for (int64_t i = 0; c->din[0].data && i < C; i++) {
            real xhat = (x[i] - x[0] - m.mean) * m.scale;
            op_put(&c->din[0], r * C + i, m.scale * (dy[i] * gain[i] - (sum + xhat * dot) / (real)C));
        }
    }
}

static void backward_columns(const call *c, int64_t begin, int64_t end) {
    int64_t C = operand_width(&c->in[0]), rows = operand_rows(&c->in[0]);
    const real *x = c->in[0].data, *dy = c->dout[0].data;
    const moments *m = c->scratch;
    for (int64_t i = begin; i < end; i++) {
        real gain = 0, bias = 0;
        for (int64_t r = 0; r < rows; r++) {
            gain += dy[r * C + i] * (x[r * C + i] - x[r * C] - m[r].mean) * m[r].scale;
            bias += dy[r * C + i];
        }
        if (c->din[1].data) op_put(&c->din[1], i, gain);
        if (c->din[2].data) op_put(&c->din[2], i, bias);
    }
}

static void backward(const call *c) {
    op_for(c, operand_rows(&c->in[0]), operand_width(&c->in[0]), backward_rows);
    op_for(c, operand_width(&c->in[0]), operand_rows(&c->in[0]), backward_columns);
}

static size_t scratch(const call *c) {
    return c->backward ? (size_t)operand_rows(&c->in[0]) * sizeof(moments) : 0;
}

const kernel KERNEL(layernorm) = {forward, backward, scratch, NULL};

#endif

// linear: y = act(x W' + b), over the last dimension of x.
//   x [..., I], weight [O, I], bias [O] or none -> y [..., O]
// Backward: dz = dy act'(z); dx = dz W; dW = dz' x; db = sum of dz over rows. GELU keeps z, the others derive the slope
// from y.
#include "ops/activation.h"
#include "ops/op.h"

#ifdef OP_RULES

tensor op_linear(graph *g, tensor x, tensor weight, tensor bias, activation act) {
    shape sx = op_shape(g, x), sw = op_shape(g, weight);
    CHECK(sw.rank == 2 && shape_last(sx) == sw.dim[1], "linear: %lld columns meet a weight of %lld",
        (long long)shape_last(sx), (long long)shape_last(sw));
    CHECK(!bias.id || shape_equal(op_shape(g, bias), shape1(sw.dim[0])), "linear: bias does not fit");
    node *n = OP_NODE(g, linear, x, weight, bias);
    linear_attr a = {act};
    graph_attr_add(g, n, &a, sizeof a);
    n->flows = 7;
    n->rounds = 1;
    n->needs = NEEDS_INPUT(0) | NEEDS_INPUT(1);
    if (act == ACT_RELU || act == ACT_TANH || act == ACT_SIGMOID) n->needs |= NEEDS_OUTPUT(0);
    sx.dim[sx.rank - 1] = sw.dim[0];
    return graph_output_add(g, n, DTYPE_F32, sx);
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const linear_attr *a = c->attr;
    int64_t I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    const real *w = c->in[1].data, *b = c->in[2].data;
    for (int64_t r = begin; r < end; r++) {
        const real *x = (const real *)c->in[0].data + r * I;
        real *y = (real *)c->out[0].data + r * O, *kept = c->reserve;
        for (int64_t o = 0; o < O; o++) {
            real z = b ? b[o] : 0;
            for (int64_t i = 0; i < I; i++) z += x[i] * w[o * I + i];
            if (kept) kept[r * O + o] = z;
            y[o] = activation_of(a->act, z);
        }
    }
}

static void forward(const call *c) {
    op_for(c, operand_rows(&c->out[0]), operand_width(&c->in[0]) * operand_width(&c->out[0]), forward_rows);
}

// dz into scratch, and dx.
static void backward_rows(const call *c, int64_t begin, int64_t end) {
    const linear_attr *a = c->attr;
    int64_t I = operand_width(&c->in[0]), O = operand_width(&c->out[0]);
    const real *w = c->in[1].data, *y = c->out[0].data, *dy = c->dout[0].data, *z = c->reserve;
    real *dz = c->scratch;
    for (int64_t k = begin * O; k < end * O; k++) dz[k] = dy[k] * activation_slope(a->act, z ? z[k] : 0, y ? y[k] : 0);
    for (int64_t r = begin; c->din[0].data && r < end; r++) {
        for (int64_t i = 0; i < I; i++) {
            real sum = 0;
            for (int64_t o = 0; o < O; o++) sum += dz[r * O + o] * w[o * I + i];
            op_put(&c->din[0], r * I + i, sum);
        }
    }
}

static void backward_weights(const call *c, int64_t begin, int64_t end) {
    int64_t I = operand_width(&c->in[0]), O = operand_width(&c->out[0]), rows = operand_rows(&c->out[0]);
    const real *x = c->in[0].data, *dz = c->scratch;
    for (int64_t o = begin; o < end; o++) {
        for (int64_t i = 0; c->din[1].data && i < I; i++) {
            real sum = 0;
            for (int64_t r = 0; r < rows; r++) sum += dz[r * O + o] * x[r * I + i];
            op_put(&c->din[1], o * I + i, sum);
        }
        real sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += dz[r * O + o];
        if (c->din[2].data) op_put(&c->din[2], o, sum);
    }
}

static void backward(const call *c) {
    int64_t I = operand_width(&c->in[0]), O = operand_width(&c->out[0]), rows = operand_rows(&c->out[0]);
    op_for(c, rows, I * O, backward_rows);
    op_for(c, O, I * rows, backward_weights);
}

static size_t scratch(const call *c) {
    return c->backward ? (size_t)operand_count(&c->out[0]) * sizeof(real) : 0;
}

static size_t reserve(const call *c) {
    return ((const linear_attr *)c->attr)->act == ACT_GELU ? (size_t)operand_count(&c->out[0]) * sizeof(real) : 0;
}

const kernel KERNEL(linear) = {forward, backward, scratch, reserve};

#endif

// basis: a mixture of fixed functions: y = theta times the basis.
//   theta [B, K], basis [K, H] -> y [B, H]
// The basis is a constant: no gradient flows to it. A linear layer could compute the same, but is of the class whose
// products are rounded to 16 bits, which turns a trend into steps: a power of time has no 8 bits to spare.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_basis(graph *g, tensor theta, tensor basis) {
    shape s = op_shape(g, theta), f = op_shape(g, basis);
    CHECK(s.rank == 2 && f.rank == 2 && s.dim[1] == f.dim[0], "basis: %lld factors meet %lld functions",
        (long long)shape_last(s), (long long)f.dim[0]);
    node *n = OP_NODE(g, basis, theta, basis);
    n->flows = 1;
    n->needs = NEEDS_INPUT(1);
    return graph_output_add(g, n, DTYPE_F32, shape2(s.dim[0], f.dim[1]));
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t K = c->in[1].shape.dim[0], H = c->in[1].shape.dim[1];
    const real *f = c->in[1].data;
    for (int64_t b = begin; b < end; b++) {
        const real *theta = (const real *)c->in[0].data + b * K;
        real *y = (real *)c->out[0].data + b * H;
        for (int64_t h = 0; h < H; h++) y[h] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t h = 0; h < H; h++) y[h] += theta[k] * f[k * H + h];
    }
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t K = c->in[1].shape.dim[0], H = c->in[1].shape.dim[1];
    const real *f = c->in[1].data;
    for (int64_t b = begin; b < end; b++) {
        const real *dy = (const real *)c->dout[0].data + b * H;
        for (int64_t k = 0; k < K; k++) {
            real sum = 0;
            for (int64_t h = 0; h < H; h++) sum += dy[h] * f[k * H + h];
            op_put(&c->din[0], b * K + k, sum);
        }
    }
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], operand_count(&c->in[1]), forward_rows);
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], operand_count(&c->in[1]), backward_rows);
}

const kernel KERNEL(basis) = {forward, backward, NULL, NULL};

#endif

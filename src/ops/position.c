// position: adds to every step of a sequence what the table has for that step, the same in every sample.
//   x [B, T, D], table [T, D] -> y [B, T, D]
#include "ops/op.h"

#ifdef OP_RULES

tensor op_position(graph *g, tensor x, tensor table) {
    shape s = op_shape(g, x);
    CHECK(s.rank == 3 && shape_equal(op_shape(g, table), shape2(s.dim[1], s.dim[2])), "position: table does not fit");
    node *n = OP_NODE(g, position, x, table);
    n->flows = 3;
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t n = operand_count(&c->in[1]);
    const real *x = c->in[0].data, *table = c->in[1].data;
    real *y = c->out[0].data;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = 0; i < n; i++) y[b * n + i] = x[b * n + i] + table[i];
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t n = operand_count(&c->in[1]);
    const real *dy = c->dout[0].data;
    for (int64_t i = begin * n; i < end * n; i++) op_put(&c->din[0], i, dy[i]);
}

static void backward_table(const call *c, int64_t begin, int64_t end) {
    int64_t B = c->in[0].shape.dim[0], n = operand_count(&c->in[1]);
    const real *dy = c->dout[0].data;
    for (int64_t i = begin; i < end; i++) {
        real sum = 0;
        for (int64_t b = 0; b < B; b++) sum += dy[b * n + i];
        op_put(&c->din[1], i, sum);
    }
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], operand_count(&c->in[1]), forward_rows);
}

static void backward(const call *c) {
    if (c->din[0].data) op_for(c, c->in[0].shape.dim[0], operand_count(&c->in[1]), backward_rows);
    if (c->din[1].data) op_for(c, operand_count(&c->in[1]), c->in[0].shape.dim[0], backward_table);
}

const kernel KERNEL(position) = {forward, backward, NULL, NULL};

#endif

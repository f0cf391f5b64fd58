// last_time: the last step of a sequence.
//   x [B, T, C] -> y [B, C]
// Backward: the steps before it get a zero gradient.
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_last_time(graph *g, tensor x) {
    shape s = op_shape(g, x);
    CHECK(s.rank == 3, "last_time: x needs 3 dimensions");
    node *n = OP_NODE(g, last_time, x);
    n->flows = 1;
    return graph_output_add(g, n, DTYPE_F32, shape2(s.dim[0], s.dim[2]));
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t T = c->in[0].shape.dim[1], C = c->in[0].shape.dim[2];
    for (int64_t b = begin; b < end; b++)
        memcpy((real *)c->out[0].data + b * C, (const real *)c->in[0].data + (b * T + T - 1) * C,
            (size_t)C * sizeof(real));
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t T = c->in[0].shape.dim[1], C = c->in[0].shape.dim[2], before = (T - 1) * C;
    const real *dy = c->dout[0].data;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = 0; i < T * C; i++) op_put(&c->din[0], b * T * C + i, i >= before ? dy[b * C + i - before] : 0);
}

static void forward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], c->in[0].shape.dim[2], forward_rows);
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], c->in[0].shape.dim[1] * c->in[0].shape.dim[2], backward_rows);
}

const kernel KERNEL(last_time) = {forward, backward, NULL, NULL};

#endif

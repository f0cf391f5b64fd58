// reshape: the same values under another shape.
//   x -> y of the shape given, which has as many elements
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_reshape(graph *g, tensor x, shape as) {
    node *n = OP_NODE(g, reshape, x);
    n->flows = 1;
    return graph_output_add(g, n, DTYPE_F32, as);
}

#else

static void forward(const call *c) {
    int64_t n = operand_count(&c->in[0]);
    CHECK(n == operand_count(&c->out[0]), "reshape: %lld elements become %lld", (long long)n,
        (long long)operand_count(&c->out[0]));
    memcpy(c->out[0].data, c->in[0].data, (size_t)n * sizeof(real));
}

static void backward(const call *c) {
    const real *dy = c->dout[0].data;
    for (int64_t i = 0; i < operand_count(&c->in[0]); i++) op_put(&c->din[0], i, dy[i]);
}

const kernel KERNEL(reshape) = {forward, backward, NULL, NULL};

#endif

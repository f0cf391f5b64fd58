// dropout: in training each element is zeroed with the given probability and the rest are divided by what is kept; in
// evaluation the identity.
//   x [B, ...] -> y, of the same shape; the first dimension is the row that the random counter names
// Backward draws the same bits again, so no mask is stored.
#include "ops/op.h"
#include "ops/random.h"

#include <string.h>

#ifdef OP_RULES

tensor op_dropout(graph *g, tensor x, float probability) {
    CHECK(probability >= 0 && probability < 1, "dropout of %g", (double)probability);
    CHECK(graph_nodes(g) < 65536, "dropout: its node's number has 16 bits of the random counter");
    node *n = OP_NODE(g, dropout, x);
    dropout_attr a = {probability};
    graph_attr_add(g, n, &a, sizeof a);
    n->flows = 1;
    return graph_output_add(g, n, DTYPE_F32, op_shape(g, x));
}

#else

static int64_t row_elements(const call *c) {
    return operand_count(&c->in[0]) / c->in[0].shape.dim[0];
}

static void apply(const call *c, const operand *from, const operand *to, int64_t begin, int64_t end) {
    float p = ((const dropout_attr *)c->attr)->probability;
    uint32_t least = random_threshold(p);
    real scale = (real)random_scale(p);
    random_key key = random_key_of(c->step);
    int64_t n = row_elements(c);
    const real *x = from->data;
    for (int64_t b = begin; b < end; b++) {
        for (int64_t first = 0; first < n; first += RANDOM_OCTET) {
            rng_block r = random_dropout(&key, (uint64_t)b, c->node, (uint32_t)(first / RANDOM_OCTET));
            for (int i = 0; i < RANDOM_OCTET && first + i < n; i++) {
                int64_t at = b * n + first + i;
                op_put(to, at, random_bits(&r, i) >= least ? x[at] * scale : 0);
            }
        }
    }
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->in[0], &c->out[0], begin, end);
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    apply(c, &c->dout[0], &c->din[0], begin, end);
}

static void forward(const call *c) {
    if (c->training) {
        op_for(c, c->in[0].shape.dim[0], row_elements(c) * 8, forward_rows);
    } else {
        memcpy(c->out[0].data, c->in[0].data, (size_t)operand_count(&c->in[0]) * sizeof(real));
    }
}

static void backward(const call *c) {
    op_for(c, c->in[0].shape.dim[0], row_elements(c) * 8, backward_rows);
}

const kernel KERNEL(dropout) = {forward, backward, NULL, NULL};

#endif

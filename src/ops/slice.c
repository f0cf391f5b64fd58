// slice: columns begin .. end-1 of the last dimension.
//   x [..., C] -> y [..., end - begin]
// Backward: the columns outside get a zero gradient.
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_slice(graph *g, tensor x, int64_t begin, int64_t end) {
    shape s = op_shape(g, x);
    CHECK(0 <= begin && begin < end && end <= shape_last(s), "slice %lld:%lld of %lld columns", (long long)begin,
        (long long)end, (long long)shape_last(s));
    node *n = OP_NODE(g, slice, x);
    slice_attr a = {begin, end};
    graph_attr_add(g, n, &a, sizeof a);
    n->flows = 1;
    s.dim[s.rank - 1] = end - begin;
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const slice_attr *a = c->attr;
    int64_t C = operand_width(&c->in[0]), width = a->end - a->begin;
    for (int64_t r = begin; r < end; r++)
        memcpy((real *)c->out[0].data + r * width, (const real *)c->in[0].data + r * C + a->begin,
            (size_t)width * sizeof(real));
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    const slice_attr *a = c->attr;
    int64_t C = operand_width(&c->in[0]), width = a->end - a->begin;
    const real *dy = c->dout[0].data;
    for (int64_t r = begin; r < end; r++)
        for (int64_t i = 0; i < C; i++) {
            bool inside = i >= a->begin && i < a->end;
            op_put(&c->din[0], r * C + i, inside ? dy[r * width + i - a->begin] : 0);
        }
}

static void forward(const call *c) {
    op_for(c, operand_rows(&c->out[0]), operand_width(&c->out[0]), forward_rows);
}

static void backward(const call *c) {
    op_for(c, operand_rows(&c->in[0]), operand_width(&c->in[0]), backward_rows);
}

const kernel KERNEL(slice) = {forward, backward, NULL, NULL};

#endif

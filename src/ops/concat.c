// concat: tensors side by side along the last dimension.
//   parts [..., C1], [..., C2], ... -> y [..., C1 + C2 + ...]
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_concat(graph *g, const tensor *parts, int count) {
    CHECK(count > 0 && count <= INPUTS_MOST, "concat of %d tensors", count);
    node *n = op_node(g, OP_concat, parts, count);
    n->flows = (1u << count) - 1;
    shape s = op_shape(g, parts[0]);
    for (int k = 1; k < count; k++) {
        shape p = op_shape(g, parts[k]);
        int64_t width = shape_last(p);
        p.dim[p.rank - 1] = shape_last(s);
        CHECK(shape_equal(p, s), "concat: part %d does not fit", k);
        s.dim[s.rank - 1] += width;
    }
    return graph_output_add(g, n, DTYPE_F32, s);
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t C = operand_width(&c->out[0]);
    for (int64_t r = begin; r < end; r++) {
        real *y = (real *)c->out[0].data + r * C;
        for (int k = 0; k < c->inputs; k++) {
            int64_t width = operand_width(&c->in[k]);
            memcpy(y, (const real *)c->in[k].data + r * width, (size_t)width * sizeof(real));
            y += width;
        }
    }
}

static void backward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t C = operand_width(&c->out[0]);
    for (int64_t r = begin; r < end; r++) {
        const real *dy = (const real *)c->dout[0].data + r * C;
        for (int k = 0; k < c->inputs; k++) {
            int64_t width = operand_width(&c->in[k]);
            for (int64_t i = 0; c->din[k].data && i < width; i++) op_put(&c->din[k], r * width + i, dy[i]);
            dy += width;
        }
    }
}

static void forward(const call *c) {
    op_for(c, operand_rows(&c->out[0]), operand_width(&c->out[0]), forward_rows);
}

static void backward(const call *c) {
    op_for(c, operand_rows(&c->out[0]), operand_width(&c->out[0]), backward_rows);
}

const kernel KERNEL(concat) = {forward, backward, NULL, NULL};

#endif

// What losses of the difference prediction - target share: mse, mae and their kin differ in one function and its slope.
//   prediction, target [B, C], weight [B] (of rows) -> {sum, normaliser}, the normaliser counting elements
// Divided, they give the mean over elements that PyTorch's losses have. A row of weight 0 is never read.
#ifndef TRADEWIND_OPS_POINTWISE_H
#define TRADEWIND_OPS_POINTWISE_H

#include "ops/loss.h"

#ifdef OP_RULES

static inline tensor pointwise_node(graph *g, op o, tensor prediction, tensor target, tensor weight) {
    shape s = op_shape(g, prediction);
    CHECK(s.rank == 2 && shape_equal(s, op_shape(g, target)), "%s: prediction and target differ in shape", op_name(o));
    CHECK(shape_equal(op_shape(g, weight), shape1(s.dim[0])), "%s: row weights do not fit", op_name(o));
    node *n = op_node(g, o, (const tensor[]){prediction, target, weight}, 3);
    n->flows = 1;
    n->needs = NEEDS_INPUT(0) | NEEDS_INPUT(1) | NEEDS_INPUT(2);
    return graph_output_add(g, n, DTYPE_F32, shape1(2));
}

#else

typedef real pointwise_fn(real difference);

static inline loss_sums pointwise_piece(const call *c, int64_t piece, pointwise_fn *value) {
    int64_t C = c->in[0].shape.dim[1];
    const real *p = c->in[0].data, *t = c->in[1].data, *weight = c->in[2].data;
    loss_sums part = {0, 0};
    for (int64_t b = piece * LOSS_PIECE; b < loss_piece_end(c, piece); b++) {
        if (weight[b] == 0) continue;
        real sum = 0;
        for (int64_t i = b * C; i < (b + 1) * C; i++) sum += value(p[i] - t[i]);
        part.sum += (double)(weight[b] * sum);
        part.norm += (double)(weight[b] * (real)C);
    }
    return part;
}

static inline void pointwise_forward(const call *c, int64_t begin, int64_t end, pointwise_fn *value) {
    for (int64_t i = begin; i < end; i++) ((loss_sums *)c->scratch)[i] = pointwise_piece(c, i, value);
}

static inline void pointwise_backward(const call *c, int64_t begin, int64_t end, pointwise_fn *slope) {
    int64_t C = c->in[0].shape.dim[1];
    const real *p = c->in[0].data, *t = c->in[1].data, *weight = c->in[2].data;
    real up = ((const real *)c->dout[0].data)[0];
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = b * C; i < (b + 1) * C; i++)
            op_put(&c->din[0], i, weight[b] != 0 ? up * weight[b] * slope(p[i] - t[i]) : 0);
}

// Defines the kernel record of loss `name` from the functions `value` and `slope` of the file.
#define POINTWISE_KERNEL(name)                                                                                         \
    static void forward_pieces(const call *c, int64_t begin, int64_t end) {                                            \
        pointwise_forward(c, begin, end, value);                                                                       \
    }                                                                                                                  \
    static void backward_rows(const call *c, int64_t begin, int64_t end) {                                             \
        pointwise_backward(c, begin, end, slope);                                                                      \
    }                                                                                                                  \
    static void forward(const call *c) {                                                                               \
        loss_forward(c, forward_pieces);                                                                               \
    }                                                                                                                  \
    static void backward(const call *c) {                                                                              \
        op_for(c, c->in[0].shape.dim[0], c->in[0].shape.dim[1], backward_rows);                                        \
    }                                                                                                                  \
    const kernel KERNEL(name) = {forward, backward, loss_scratch, NULL}

#endif
#endif

// Shared by losses of a prediction and its target: mse, mae and their kin differ in one function and its slope.
//   prediction, target [B, C], weight [B] (of rows) -> {sum, normaliser}, the normaliser counting elements
// Divided, they give the mean over elements that PyTorch's losses have. A row of weight 0 is never read.
// A fourth input, scale [B], divides the rows' sums; a row of scale 0 is one of weight 0.
#ifndef TRADEWIND_OPS_POINTWISE_H
#define TRADEWIND_OPS_POINTWISE_H

#include "ops/loss.h"

#ifdef OP_RULES

static inline node *pointwise_add(graph *g, op o, const tensor *input, int inputs) {
    tensor prediction = input[0], target = input[1], weight = input[2];
    shape s = op_shape(g, prediction);
    CHECK(s.rank == 2 && shape_equal(s, op_shape(g, target)), "%s: prediction and target differ in shape", op_name(o));
    CHECK(shape_equal(op_shape(g, weight), shape1(s.dim[0])), "%s: row weights do not fit", op_name(o));
    CHECK(inputs < 4 || shape_equal(op_shape(g, input[3]), shape1(s.dim[0])), "%s: scales do not fit", op_name(o));
    node *n = op_node(g, o, input, inputs);
    n->flows = 1;
    for (int i = 0; i < inputs; i++) n->needs |= NEEDS_INPUT(i);
    graph_output_add(g, n, DTYPE_F32, shape1(2));
    return n;
}

static inline tensor pointwise_node(graph *g, op o, tensor prediction, tensor target, tensor weight) {
    return pointwise_add(g, o, (const tensor[]){prediction, target, weight}, 3)->output[0];
}

#else

typedef real pointwise_fn(const call *c, real prediction, real target);

// Factor of a row's elements; 0: the row is not read.
static inline real pointwise_factor(const call *c, int64_t b) {
    real w = ((const real *)c->in[2].data)[b];
    if (c->inputs < 4 || w == 0) return w;
    real scale = ((const real *)c->in[3].data)[b];
    return scale != 0 ? w / scale : 0;
}

static inline loss_sums pointwise_piece(const call *c, int64_t piece, pointwise_fn *value) {
    int64_t C = c->in[0].shape.dim[1];
    const real *p = c->in[0].data, *t = c->in[1].data, *weight = c->in[2].data;
    loss_sums part = {0, 0};
    for (int64_t b = piece * LOSS_PIECE; b < loss_piece_end(c, piece); b++) {
        real factor = pointwise_factor(c, b), sum = 0;
        if (factor == 0) continue;
        for (int64_t i = b * C; i < (b + 1) * C; i++) sum += value(c, p[i], t[i]);
        part.sum += (double)(factor * sum);
        part.norm += (double)(weight[b] * (real)C);
    }
    return part;
}

static inline void pointwise_forward(const call *c, int64_t begin, int64_t end, pointwise_fn *value) {
    for (int64_t i = begin; i < end; i++) ((loss_sums *)c->scratch)[i] = pointwise_piece(c, i, value);
}

static inline void pointwise_backward(const call *c, int64_t begin, int64_t end, pointwise_fn *slope) {
    int64_t C = c->in[0].shape.dim[1];
    const real *p = c->in[0].data, *t = c->in[1].data;
    real up = ((const real *)c->dout[0].data)[0];
    for (int64_t b = begin; b < end; b++) {
        real factor = pointwise_factor(c, b);
        for (int64_t i = b * C; i < (b + 1) * C; i++)
            op_put(&c->din[0], i, factor != 0 ? up * factor * slope(c, p[i], t[i]) : 0);
    }
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

// Shared by losses over classes: their rule, and a row's softmax. Inputs of the call: logits [B, K], label [B] (i32),
// weight [B], class_weight [K] or none.
#ifndef TRADEWIND_OPS_SOFTMAX_H
#define TRADEWIND_OPS_SOFTMAX_H

#include "ops/loss.h"

#include <math.h>

#ifdef OP_RULES

static inline node *classes_node(
    graph *g, op o, tensor logits, tensor label, tensor weight, tensor class_weight, float smoothing) {
    shape s = op_shape(g, logits);
    CHECK(s.rank == 2 && smoothing >= 0 && smoothing < 1, "%s: logits need 2 dimensions", op_name(o));
    CHECK(shape_equal(op_shape(g, label), shape1(s.dim[0])), "%s: labels do not fit", op_name(o));
    CHECK(shape_equal(op_shape(g, weight), shape1(s.dim[0])), "%s: row weights do not fit", op_name(o));
    CHECK(!class_weight.id || shape_equal(op_shape(g, class_weight), shape1(s.dim[1])), "%s: class weights do not fit",
        op_name(o));
    node *n = op_node(g, o, (const tensor[]){logits, label, weight, class_weight}, 4);
    n->flows = 1;
    n->needs = NEEDS_INPUT(0) | NEEDS_INPUT(1) | NEEDS_INPUT(2) | NEEDS_INPUT(3);
    graph_output_add(g, n, DTYPE_F32, shape1(2));
    return n;
}

#else

static inline real class_weight(const call *c, int64_t k) {
    const real *w = c->in[3].data;
    return w ? w[k] : 1;
}

// A row's softmax: log p_k = z_k - top - log_sum. The two are kept apart, since their sum would round away the digits
// of log_sum where logits are large.
typedef struct {
    real top, log_sum;
} softmax;

static inline softmax softmax_of(const real *z, int64_t K) {
    real top = z[0], sum = 0;
    for (int64_t k = 1; k < K; k++) top = z[k] > top ? z[k] : top;
    for (int64_t k = 0; k < K; k++) sum += (real)exp((double)(z[k] - top));
    return (softmax){top, (real)log((double)sum)};
}

static inline real log_p(softmax m, real z) {
    return z - m.top - m.log_sum;
}

static inline int32_t label_of(const call *c, int64_t b) {
    int32_t y = ((const int32_t *)c->in[1].data)[b];
    CHECK(y >= 0 && y < c->in[0].shape.dim[1], "%s: label %d", c->name, (int)y);
    return y;
}

#endif
#endif

// confusion: counts of (true class, predicted class), added to a state that the host clears.
//   logits [B, K], label [B] (i32), weight [B] -> state [K, K] (i64), rows are true classes
// The prediction is the first largest logit; a NaN is larger than nothing, so it wins only where all before it and
// after it are NaN too (class 0). Rows of weight 0 are left out.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_confusion(graph *g, tensor logits, tensor label, tensor weight) {
    shape s = op_shape(g, logits);
    CHECK(s.rank == 2 && shape_equal(op_shape(g, label), shape1(s.dim[0])), "confusion: labels do not fit");
    CHECK(shape_equal(op_shape(g, weight), shape1(s.dim[0])), "confusion: row weights do not fit");
    node *n = OP_NODE(g, confusion, logits, label, weight);
    return graph_state_output_add(g, n, "confusion", DTYPE_I64, shape2(s.dim[1], s.dim[1]));
}

#else

static void forward(const call *c) {
    int64_t B = c->in[0].shape.dim[0], K = c->in[0].shape.dim[1];
    const int32_t *label = c->in[1].data;
    const real *weight = c->in[2].data;
    int64_t *count = c->out[0].data;
    for (int64_t b = 0; b < B; b++) {
        if (weight[b] == 0) continue;
        const real *z = (const real *)c->in[0].data + b * K;
        int64_t best = 0;
        for (int64_t k = 1; k < K; k++) best = z[k] > z[best] || (z[best] != z[best] && z[k] == z[k]) ? k : best;
        CHECK(label[b] >= 0 && label[b] < K, "confusion: label %d", (int)label[b]);
        count[label[b] * K + best]++;
    }
}

const kernel KERNEL(confusion) = {forward, NULL, NULL, NULL};

#endif

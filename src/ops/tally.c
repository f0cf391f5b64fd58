// tally: adds a micro-batch's {sum, normaliser} to those of the step and to those of the epoch.
//   sums [2] -> state [4] (f64): step sum, step normaliser, sum, normaliser
// The step's part starts anew with a step's first micro-batch; the epoch's part is cleared by the host.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_tally(graph *g, tensor sums) {
    CHECK(shape_equal(op_shape(g, sums), shape1(2)), "tally: not a loss");
    node *n = OP_NODE(g, tally, sums);
    return graph_state_output_add(g, n, "totals", DTYPE_F64, shape1(TALLY_COUNT));
}

#else

static void forward(const call *c) {
    const real *sums = c->in[0].data;
    double *total = c->out[0].data;
    for (int k = 0; k < 2; k++) {
        double v = (double)sums[k];
        total[TALLY_STEP_SUM + k] = c->first ? v : total[TALLY_STEP_SUM + k] + v;
        total[TALLY_SUM + k] += v;
    }
}

const kernel KERNEL(tally) = {forward, NULL, NULL, NULL};

#endif

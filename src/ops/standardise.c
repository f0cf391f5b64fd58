// standardise: values less their running mean, over their running deviation, cut to +-clip.
//   x [B, C] -> y [B, C], a state of count, C means, C variances (f64)
//   y = (x - mean) / sqrt(variance + 1e-8), within clip
// With `learn` the moments take in the batch before that, as two samples are joined. The state starts as zeros, which
// are read as 1e-4 values of mean 0 and variance 1.
#include "ops/op.h"
#include "ops/running.h"

#ifdef OP_RULES

tensor op_standardise(graph *g, tensor x, standardise_settings settings) {
    shape s = op_shape(g, x);
    CHECK(s.rank == 2, "standardise: x is [B, C]");
    node *n = OP_NODE(g, standardise, x);
    graph_attr_add(g, n, &settings, sizeof settings);
    tensor y = graph_output_add(g, n, DTYPE_F32, s);
    graph_state_output_add(g, n, "observation moments", DTYPE_F64, shape1(RUNNING_HEAD + 2 * s.dim[1]));
    return y;
}

#else

static void learn_columns(const call *c, int64_t begin, int64_t end) {
    int64_t B = c->in[0].shape.dim[0], C = c->in[0].shape.dim[1];
    const real *x = c->in[0].data;
    double *state = c->out[1].data, count = running_count(state[0]);
    for (int64_t i = begin; i < end; i++) {
        running_moments was = running_at(state, C, i), now = {0, 0};
        for (int64_t b = 0; b < B; b++) now.mean += (double)x[b * C + i] / (double)B;
        for (int64_t b = 0; b < B; b++) {
            double d = (double)x[b * C + i] - now.mean;
            now.variance += d * d / (double)B;
        }
        running_put(state, C, i, running_join(was, count, now, (double)B));
    }
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t C = c->in[0].shape.dim[1];
    double clip = (double)((const standardise_settings *)c->attr)->clip;
    const real *x = c->in[0].data;
    real *y = c->out[0].data;
    for (int64_t i = begin * C; i < end * C; i++) {
        running_moments m = running_at(c->out[1].data, C, i % C);
        y[i] = (real)running_cut(((double)x[i] - m.mean) / sqrt(m.variance + RUNNING_EPS), clip);
    }
}

static void forward(const call *c) {
    int64_t B = c->in[0].shape.dim[0], C = c->in[0].shape.dim[1];
    double *count = c->out[1].data;
    if (((const standardise_settings *)c->attr)->learn) {
        op_for(c, C, B, learn_columns);
        *count = running_count(*count) + (double)B;
    }
    op_for(c, B, C * 4, forward_rows);
}

const kernel KERNEL(standardise) = {forward, NULL, NULL, NULL};

#endif

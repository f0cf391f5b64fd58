// level: one number that tells how large the values of a row are, or how much they move; forecasts are measured by it.
//   x [B, ...] -> level [B]
// LEVEL_MEAN is the mean of the absolute values, 1 where that is 0. LEVEL_NAIVE is the mean of |x_t - x_(t - season)|,
// what forecasting the value of a season ago errs by, which MASE divides by; it is 0 where a row is too short.
// Zeros at the beginning of a row are padding and left out. No gradient flows.
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_level(graph *g, tensor x, level_settings settings) {
    shape s = op_shape(g, x);
    CHECK(s.rank > 1 && settings.season > 0, "level: x needs rows, and a season a step");
    node *n = OP_NODE(g, level, x);
    graph_attr_add(g, n, &settings, sizeof settings);
    return graph_output_add(g, n, DTYPE_F32, shape1(s.dim[0]));
}

#else

static real level_of(const real *x, int64_t n, const level_settings *a) {
    int64_t first = 0, back = a->kind == LEVEL_NAIVE ? a->season : 0;
    real sum = 0;
    while (first < n && x[first] == 0) first++;
    for (int64_t i = first + back; i < n; i++)
        sum += (real)fabs((double)(a->kind == LEVEL_NAIVE ? x[i] - x[i - back] : x[i]));
    int64_t count = n - first - back;
    if (count <= 0 || sum == 0) return a->kind == LEVEL_NAIVE ? 0 : 1;
    return sum / (real)count;
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t n = operand_count(&c->in[0]) / c->in[0].shape.dim[0];
    real *level = c->out[0].data;
    for (int64_t b = begin; b < end; b++) level[b] = level_of((const real *)c->in[0].data + b * n, n, c->attr);
}

static void forward(const call *c) {
    int64_t B = c->in[0].shape.dim[0];
    op_for(c, B, operand_count(&c->in[0]) / B, forward_rows);
}

const kernel KERNEL(level) = {forward, NULL, NULL, NULL};

#endif

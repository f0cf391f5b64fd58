// window: the last `length` rows of a series up to and including a given row, gathered from a panel.
//   series [N, C]; row [B], first [B] (i32): the window's last row, and the first row of the series it belongs to
//   -> x [B, length, C], or [B, length * C] with WINDOW_FLAT; mask [B, length]: 1, or 0 for padding; scale [B]: what
//   the window was divided by
// Rows before the series' first are padding on the left: zeros. With SCALE_MEAN_ABS the window is divided by the mean
// of its absolute values (1 where that is 0), which is what forecasters normalise by. No gradient flows to a series.
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_window(
    graph *g, tensor series, tensor row, tensor first, int64_t length, window_layout layout, window_scale scale) {
    shape s = op_shape(g, series), r = op_shape(g, row);
    CHECK(s.rank == 2 && length > 0, "window: a series has 2 dimensions and a window at least 1 row");
    CHECK(shape_equal(r, op_shape(g, first)), "window: row and first differ in shape");
    node *n = OP_NODE(g, window, series, row, first);
    window_attr a = {length, scale};
    graph_attr_add(g, n, &a, sizeof a);
    n->wide = 1u << 1 | 1u << 2;
    bool flat = layout == WINDOW_FLAT;
    shape out = flat ? shape2(r.dim[0], length * s.dim[1]) : shape3(r.dim[0], length, s.dim[1]);
    tensor x = graph_output_add(g, n, graph_info(g, series)->type, out);
    graph_output_add(g, n, DTYPE_F32, shape2(r.dim[0], length));
    graph_output_add(g, n, DTYPE_F32, shape1(r.dim[0]));
    return x;
}

#else

static real mean_abs(const real *x, int64_t n) {
    real sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (real)fabs((double)x[i]);
    return n && sum > 0 ? sum / (real)n : 1;
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const window_attr *a = c->attr;
    int64_t N = c->in[0].shape.dim[0], C = c->in[0].shape.dim[1], T = a->length;
    const int32_t *row = c->in[1].data, *first = c->in[2].data;
    real *mask = c->out[1].data, *scales = c->out[2].data;
    for (int64_t b = begin; b < end; b++) {
        CHECK(first[b] >= 0 && first[b] <= row[b] && row[b] < N, "window: rows %d..%d of %lld", (int)first[b],
            (int)row[b], (long long)N);
        int64_t have = row[b] - first[b] + 1 < T ? row[b] - first[b] + 1 : T, pad = T - have;
        const real *from = (const real *)c->in[0].data + (row[b] - have + 1) * C;
        real *x = (real *)c->out[0].data + b * T * C;
        real scale = a->scale == SCALE_MEAN_ABS ? mean_abs(from, have * C) : 1;
        for (int64_t i = 0; i < pad * C; i++) x[i] = 0;
        for (int64_t i = 0; i < have * C; i++) x[pad * C + i] = scale == 1 ? from[i] : from[i] / scale;
        for (int64_t t = 0; t < T; t++) mask[b * T + t] = t >= pad;
        scales[b] = scale;
    }
}

static void forward(const call *c) {
    op_for(c, c->out[0].shape.dim[0], operand_count(&c->out[0]) / c->out[0].shape.dim[0], forward_rows);
}

const kernel KERNEL(window) = {forward, NULL, NULL, NULL};

#endif

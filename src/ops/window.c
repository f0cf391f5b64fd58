// window: the last `length` rows of a series up to and including a given row, gathered from a panel.
//   series: parts [N, C1], [N, C2], ... (f32, f16 or i8), whose columns stand side by side, C of them together;
//   row [B], first [B] (i32): the window's last row, and the first row of the series it belongs to;
//   scaler [2, C] or none: what every column is reduced by, then multiplied with
//   -> x [B, length, C], or [B, length * C] with WINDOW_FLAT; mask [B, length]: 1, or 0 for padding
// Rows before the series' first are padding on the left: zeros, also where there is a scaler. No gradient flows to a
// series.
#include "base/half.h"
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_window(
    graph *g, const tensor *series, int parts, tensor row, tensor first, tensor scaler, window_shape size) {
    shape r = op_shape(g, row);
    tensor input[WINDOW_MORE + WINDOW_PARTS_MOST] = {{0}, row, first, scaler};
    int64_t N = op_shape(g, series[0]).dim[0], C = 0, T = size.length;
    CHECK(parts > 0 && parts <= WINDOW_PARTS_MOST, "window: a series of %d parts", parts);
    for (int k = 0; k < parts; k++) {
        shape s = op_shape(g, series[k]);
        CHECK(s.rank == 2 && s.dim[0] == N && T > 0, "window: parts are [N, C] and a window has at least 1 row");
        input[window_input(k)] = series[k];
        C += s.dim[1];
    }
    CHECK(shape_equal(r, op_shape(g, first)), "window: row and first differ in shape");
    CHECK(!scaler.id || shape_equal(op_shape(g, scaler), shape2(2, C)), "window: the scaler is not [2, C]");
    node *n = op_node(g, OP_window, input, WINDOW_MORE + parts - 1);
    window_attr a = {T};
    graph_attr_add(g, n, &a, sizeof a);
    shape out = size.layout == WINDOW_FLAT ? shape2(r.dim[0], T * C) : shape3(r.dim[0], T, C);
    tensor x = graph_output_add(g, n, DTYPE_F32, out);
    graph_output_add(g, n, DTYPE_F32, shape2(r.dim[0], T));
    return x;
}

#else

// `rows` rows of a part, from `row` on, as the columns of x that begin at x[0]; a row of x has C.
static void copy_part(const operand *part, int64_t row, int64_t rows, real *x, int64_t C) {
    int64_t width = part->shape.dim[1];
    const real *wide = (const real *)part->data + row * width;
    const int8_t *bytes = (const int8_t *)part->data + row * width;
    const uint16_t *halves = (const uint16_t *)part->data + row * width;
    if (part->type == DTYPE_I8) {
        for (int64_t t = 0; t < rows; t++)
            for (int64_t i = 0; i < width; i++) x[t * C + i] = (real)bytes[t * width + i];
    } else if (part->type == DTYPE_F16) {
        for (int64_t t = 0; t < rows; t++)
            for (int64_t i = 0; i < width; i++) x[t * C + i] = (real)half_widen(halves[t * width + i]);
    } else if (width == C) {
        memcpy(x, wide, (size_t)(rows * C) * sizeof *x);
    } else {
        for (int64_t t = 0; t < rows; t++) memcpy(x + t * C, wide + t * width, (size_t)width * sizeof *x);
    }
}

static void apply_scaler(const real *scaler, real *x, int64_t rows, int64_t C) {
    for (int64_t t = 0; t < rows; t++)
        for (int64_t i = 0; i < C; i++) x[t * C + i] = (x[t * C + i] - scaler[i]) * scaler[C + i];
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const window_attr *a = c->attr;
    int64_t N = c->in[WINDOW_SERIES].shape.dim[0], T = a->length,
            C = operand_count(&c->out[0]) / operand_count(&c->out[1]);
    const int32_t *row = c->in[WINDOW_ROW].data, *first = c->in[WINDOW_FIRST].data;
    const real *scaler = c->in[WINDOW_SCALER].data;
    real *mask = c->out[1].data;
    for (int64_t b = begin; b < end; b++) {
        CHECK(first[b] >= 0 && first[b] <= row[b] && row[b] < N, "window: rows %d..%d of %lld", (int)first[b],
            (int)row[b], (long long)N);
        int64_t have = row[b] - first[b] + 1 < T ? row[b] - first[b] + 1 : T, pad = T - have;
        real *x = (real *)c->out[0].data + b * T * C, *to = x + pad * C;
        for (int64_t i = 0; i < pad * C; i++) x[i] = 0;
        for (int k = 0, column = 0; k < window_parts(c->inputs); k++) {
            const operand *part = &c->in[window_input(k)];
            copy_part(part, row[b] - have + 1, have, to + column, C);
            column += (int)part->shape.dim[1];
        }
        if (scaler) apply_scaler(scaler, to, have, C);
        for (int64_t t = 0; t < T; t++) mask[b * T + t] = t >= pad;
    }
}

static void forward(const call *c) {
    for (int k = 0; k < window_parts(c->inputs); k++) {
        dtype t = c->in[window_input(k)].type;
        CHECK(t == c->out[0].type || t == DTYPE_I8 || t == DTYPE_F16, "window: a series of %s", dtype_name(t));
    }
    op_for(c, c->out[0].shape.dim[0], operand_count(&c->out[0]) / c->out[0].shape.dim[0], forward_rows);
}

const kernel KERNEL(window) = {forward, NULL, NULL, NULL};

#endif

// errors: sums that the metrics of forecasts come from, added to a state that the host clears.
//   prediction, target [B, H], weight [B] (of rows), scale [B] (optional) -> state [ERRORS_COUNT] (f64)
// With e = prediction - target, every element of a row counts with the row's weight: |e|, e^2, sMAPE's term
// 200 |e| / (|prediction| + |target|) (0 where both are 0), and MASE's |e| / scale, where a scale is given and above 0.
// Rows of weight 0 are not read.
#include "ops/loss.h"

#ifdef OP_RULES

tensor op_errors(graph *g, tensor prediction, tensor target, tensor weight, tensor scale) {
    shape s = op_shape(g, prediction);
    CHECK(s.rank == 2 && shape_equal(s, op_shape(g, target)), "errors: prediction and target differ in shape");
    CHECK(shape_equal(op_shape(g, weight), shape1(s.dim[0])), "errors: row weights do not fit");
    CHECK(!scale.id || shape_equal(op_shape(g, scale), shape1(s.dim[0])), "errors: scales do not fit");
    node *n = OP_NODE(g, errors, prediction, target, weight, scale);
    return graph_state_output_add(g, n, "errors", DTYPE_F64, shape1(ERRORS_COUNT));
}

#else

typedef struct {
    double of[ERRORS_COUNT];
} sums;

static real size_of(real v) {
    return v < 0 ? -v : v;
}

// A row's sums, before its weight.
static sums row_sums(const real *p, const real *t, int64_t H, real scale) {
    sums s = {{0}};
    for (int64_t i = 0; i < H; i++) {
        real e = size_of(p[i] - t[i]), size = size_of(p[i]) + size_of(t[i]);
        s.of[ERRORS_ABSOLUTE] += (double)e;
        s.of[ERRORS_SQUARE] += (double)e * (double)e;
        s.of[ERRORS_SMAPE] += size != 0 ? (double)(200 * e / size) : 0;
    }
    s.of[ERRORS_WEIGHT] = (double)H;
    s.of[ERRORS_SCALED] = scale > 0 ? s.of[ERRORS_ABSOLUTE] / (double)scale : 0;
    s.of[ERRORS_SCALED_WEIGHT] = scale > 0 ? (double)H : 0;
    return s;
}

static void forward_pieces(const call *c, int64_t begin, int64_t end) {
    int64_t H = c->in[0].shape.dim[1];
    const real *p = c->in[0].data, *t = c->in[1].data, *weight = c->in[2].data, *scale = c->in[3].data;
    for (int64_t piece = begin; piece < end; piece++) {
        sums all = {{0}};
        for (int64_t b = piece * LOSS_PIECE; b < loss_piece_end(c, piece); b++) {
            if (weight[b] == 0) continue;
            sums row = row_sums(p + b * H, t + b * H, H, scale ? scale[b] : 0);
            for (int k = 0; k < ERRORS_COUNT; k++) all.of[k] += (double)weight[b] * row.of[k];
        }
        ((sums *)c->scratch)[piece] = all;
    }
}

static void forward(const call *c) {
    int64_t pieces = loss_pieces(c->in[0].shape.dim[0]);
    double *state = c->out[0].data;
    op_for(c, pieces, 16384, forward_pieces);
    for (int64_t i = 0; i < pieces; i++)
        for (int k = 0; k < ERRORS_COUNT; k++) state[k] += ((const sums *)c->scratch)[i].of[k];
}

static size_t scratch(const call *c) {
    return (size_t)loss_pieces(c->in[0].shape.dim[0]) * sizeof(sums);
}

const kernel KERNEL(errors) = {forward, NULL, scratch, NULL};

#endif

// clip: the gradient's global norm, the factor that turns raw gradient sums into what the optimizer uses, and the loss
// scale.
//   totals (of tally), the gradient slab -> state [CLIP_COUNT] (f64), root [2] (the root gradient, changed in place)
// root[0] is the loss scale that the gradients carry. With |g| their norm as it is:
//   norm = |g| / scale / normaliser
//   factor = min(1, max_norm / (norm + 1e-6)) / normaliser / scale, as PyTorch's clip_grad_norm_
// A norm that is not finite gives the factor 0 and is counted; optimizers then leave everything as it is. The same
// holds for a step whose normaliser is 0, but nothing is counted. Where the scale moves, a norm that is not finite
// halves it, down to LOSS_SCALE_FLOOR, and LOSS_SCALE_PATIENCE steps taken one after the other double it, up to
// LOSS_SCALE_MOST. It is a power of two, so that it changes no digit of what does not overflow or vanish. Runs once a
// step.
#include "ops/clip.h"
#include "ops/op.h"

#ifdef OP_RULES

tensor op_clip(graph *g, tensor totals, tensor root, float max_norm, bool moves) {
    CHECK(max_norm >= 0, "clip at %g", (double)max_norm);
    CHECK(shape_equal(op_shape(g, root), shape1(2)), "clip: not the root gradient of a loss");
    node *n = OP_NODE(g, clip, totals, graph_slab(g, SLAB_GRADIENTS));
    clip_attr a = {max_norm, moves};
    graph_attr_add(g, n, &a, sizeof a);
    n->phase = PHASE_UPDATE;
    tensor state = graph_state_output_add(g, n, "clip", DTYPE_F64, shape1(CLIP_COUNT));
    graph_state_written_add(g, n, root);
    return state;
}

#else

// SUMS: number of sums formed side by side, as each addition waits for the one before it.
enum { PIECE = 16384, SUMS = 32 };

static double sum_squares(const real *gradient, int64_t n) {
    double lane[SUMS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) lane[j] += (double)gradient[i + j] * (double)gradient[i + j];
    for (; i < n; i++) sum += (double)gradient[i] * (double)gradient[i];
    for (int j = 0; j < SUMS; j++) sum += lane[j];
    return sum;
}

static void sum_pieces(const call *c, int64_t begin, int64_t end) {
    const real *gradient = c->in[1].data;
    int64_t n = operand_count(&c->in[1]);
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t at = piece * PIECE;
        ((double *)c->scratch)[piece] = sum_squares(gradient + at, n - at < PIECE ? n - at : PIECE);
    }
}

static int64_t pieces_of(const call *c) {
    return (operand_count(&c->in[1]) + PIECE - 1) / PIECE;
}

static void forward(const call *c) {
    op_for(c, pieces_of(c), PIECE, sum_pieces);
    double square = 0, normaliser = ((const double *)c->in[0].data)[TALLY_STEP_NORM];
    for (int64_t i = 0; i < pieces_of(c); i++) square += ((const double *)c->scratch)[i];
    real *scale = c->out[1].data;
    *scale = (real)clip_settle(*(const clip_attr *)c->attr, square, normaliser, (double)*scale, c->out[0].data);
}

static size_t scratch(const call *c) {
    return (size_t)pieces_of(c) * sizeof(double);
}

const kernel KERNEL(clip) = {forward, NULL, scratch, NULL};

#endif

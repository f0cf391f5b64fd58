// clip: the gradient's global norm and the factor that turns raw gradient sums into what the optimizer uses.
//   totals (of tally), the gradient slab -> state [3] (f64): norm, factor, steps that were not finite
// norm = |g| / normaliser; factor = 1 / normaliser * min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_. A
// norm that is not finite gives the factor 0 and is counted; optimizers then leave everything as it is. The same holds
// for a step whose normaliser is 0, but nothing is counted. Runs once a step.
#include "ops/op.h"

#include <math.h>

#ifdef OP_RULES

tensor op_clip(graph *g, tensor totals, float max_norm) {
    CHECK(max_norm >= 0, "clip at %g", (double)max_norm);
    node *n = OP_NODE(g, clip, totals, graph_slab(g, SLAB_GRADIENTS));
    clip_attr a = {max_norm};
    graph_attr_add(g, n, &a, sizeof a);
    n->phase = PHASE_UPDATE;
    return graph_state_output_add(g, n, "clip", DTYPE_F64, shape1(CLIP_COUNT));
}

#else

enum { PIECE = 16384 };

static void sum_pieces(const call *c, int64_t begin, int64_t end) {
    const real *gradient = c->in[1].data;
    int64_t n = operand_count(&c->in[1]);
    for (int64_t piece = begin; piece < end; piece++) {
        double sum = 0;
        for (int64_t i = piece * PIECE; i < n && i < (piece + 1) * PIECE; i++)
            sum += (double)gradient[i] * (double)gradient[i];
        ((double *)c->scratch)[piece] = sum;
    }
}

static int64_t pieces_of(const call *c) {
    return (operand_count(&c->in[1]) + PIECE - 1) / PIECE;
}

static void forward(const call *c) {
    const clip_attr *a = c->attr;
    op_for(c, pieces_of(c), PIECE, sum_pieces);
    double square = 0, normaliser = ((const double *)c->in[0].data)[TALLY_STEP_NORM], *out = c->out[0].data;
    for (int64_t i = 0; i < pieces_of(c); i++) square += ((const double *)c->scratch)[i];
    double norm = normaliser > 0 ? sqrt(square) / normaliser : sqrt(square);
    double shrink = a->max_norm > 0 ? (double)a->max_norm / (norm + 1e-6) : 1;
    out[CLIP_NORM] = norm;
    out[CLIP_FACTOR] = normaliser > 0 && isfinite(norm) ? (shrink < 1 ? shrink : 1) / normaliser : 0;
    if (!isfinite(norm)) out[CLIP_NONFINITE]++;
}

static size_t scratch(const call *c) {
    return (size_t)pieces_of(c) * sizeof(double);
}

const kernel KERNEL(clip) = {forward, NULL, scratch, NULL};

#endif

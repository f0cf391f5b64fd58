// Consequences of a step's sum of squared gradients, for every device: the factor of the optimizer, the counts, and
// the loss scale's next value. Compiled by C and by nvcc.
#ifndef TRADEWIND_OPS_CLIP_H
#define TRADEWIND_OPS_CLIP_H

#include "ops/attr.h"

#include <math.h>

#ifdef __CUDACC__
#define CLIP_FN static __device__ inline
#else
#define CLIP_FN static inline
#endif

CLIP_FN double clip_next_scale(double scale, bool finite, double *state) {
    if (!finite) return scale > 2 * LOSS_SCALE_FLOOR ? scale / 2 : LOSS_SCALE_FLOOR;
    if (state[CLIP_GOOD] < LOSS_SCALE_PATIENCE) return scale;
    state[CLIP_GOOD] = 0;
    return scale < LOSS_SCALE_MOST ? 2 * scale : scale;
}

// Brings the state up to date and yields the loss scale of the next step.
CLIP_FN double clip_settle(clip_attr a, double square, double normaliser, double scale, double *state) {
    double norm = sqrt(square) / scale;
    if (normaliser > 0) norm /= normaliser;
    double shrink = a.max_norm > 0 ? (double)a.max_norm / (norm + 1e-6) : 1;
    bool finite = isfinite(norm), taken = finite && normaliser > 0;
    state[CLIP_NORM] = norm;
    state[CLIP_FACTOR] = taken ? (shrink < 1 ? shrink : 1) / normaliser / scale : 0;
    state[CLIP_TAKEN] += taken ? 1 : 0;
    state[CLIP_NONFINITE] += finite ? 0 : 1;
    state[CLIP_IN_A_ROW] = finite ? 0 : state[CLIP_IN_A_ROW] + 1;
    state[CLIP_GOOD] = finite ? state[CLIP_GOOD] + (taken ? 1 : 0) : 0;
    return a.moves ? clip_next_scale(scale, finite, state) : scale;
}

#endif

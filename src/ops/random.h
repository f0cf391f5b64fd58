// The random bits of dropout, the same on every device: a function of (seed, update, row in the effective batch, node,
// element), so that recomputing a step or splitting its batch cannot change them. Compiled by C and by nvcc.
#ifndef TRADEWIND_OPS_RANDOM_H
#define TRADEWIND_OPS_RANDOM_H

#include "base/rng.h"
#include "graph/step.h"

// The four random words of elements 4*quad .. 4*quad+3 of a row.
RNG_FN rng_block random_dropout(const step *s, uint64_t row, uint32_t node, uint32_t quad) {
    return rng_philox(s->seed, quad, (uint32_t)row, (uint32_t)RNG_DROPOUT << 16 | node, (uint32_t)s->update);
}

// An element is kept where its word is at or above this.
RNG_FN uint32_t random_threshold(float probability) {
    double t = (double)probability * 4294967296.0;
    return t >= 4294967295.0 ? 4294967295u : (uint32_t)t;
}

#endif

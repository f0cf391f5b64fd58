// Random numbers of actions, the same bits on every device. Compiled by C and by nvcc.
#ifndef TRADEWIND_OPS_CHANCE_H
#define TRADEWIND_OPS_CHANCE_H

#include "base/rng.h"

#include <math.h>

// A source of random numbers: an environment's step, by its moment (steps of all environments before it).
typedef struct {
    uint64_t seed, moment;
    uint32_t stream;
} chance;

// The k-th four words of the moment.
RNG_FN rng_block chance_words(const chance *c, uint32_t k) {
    uint32_t who = (uint32_t)RNG_ACTION << 16 | (c->stream & 0xFFFFu);
    return rng_philox(c->seed, (uint32_t)c->moment, (uint32_t)(c->moment >> 32), who, k);
}

// A number in [0, 1).
RNG_FN double chance_unit(const chance *c, uint32_t k) {
    return (double)chance_words(c, k).v[0] * 0x1p-32;
}

// The k-th normal number of the moment, by Box and Muller.
RNG_FN double chance_normal(const chance *c, uint32_t k) {
    rng_block r = chance_words(c, k >> 1);
    double radius = sqrt(-2 * log(((double)r.v[0] + 0.5) * 0x1p-32));
    double angle = 6.283185307179586 * ((double)r.v[1] * 0x1p-32);
    return radius * (k & 1 ? sin(angle) : cos(angle));
}

#endif

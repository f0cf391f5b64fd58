// The random bits of dropout, the same on every device: a function of (seed, update, row in the effective batch, node,
// element), so that recomputing a step or splitting its batch cannot change them. Compiled by C and by nvcc.
//
// A block of Philox with seven rounds serves eight neighbours, 16 bits each: drawing is much of what dropout costs. A
// share of 1/65536 is the finest that 16 bits tell apart; what is kept is multiplied with the inverse of the share that
// is kept indeed, so that the expectation is exact.
#ifndef TRADEWIND_OPS_RANDOM_H
#define TRADEWIND_OPS_RANDOM_H

#include "base/rng.h"
#include "graph/step.h"

enum { RANDOM_OCTET = 8, RANDOM_ROUNDS = 7 };

// The fields of the step record that dropout draws with.
typedef struct {
    uint64_t seed, update, row;
} random_key;

RNG_FN random_key random_key_of(step s) {
    random_key k = {s.progress->seed, s.progress->update, s.cursor->row};
    return k;
}

// The random words of elements 8*octet .. 8*octet+7 of a row of the micro-batch.
RNG_FN rng_block random_dropout(const random_key *k, uint64_t row, uint32_t node, uint32_t octet) {
    return rng_philox_rounds(RANDOM_ROUNDS, k->seed, octet, (uint32_t)(k->row + row),
        (uint32_t)RNG_DROPOUT << 16 | node, (uint32_t)k->update);
}

// The bits of element e of the eight: two to a word, the even one in its low half.
RNG_FN uint32_t random_bits(const rng_block *r, int e) {
    return e & 1 ? r->v[e >> 1] >> 16 : r->v[e >> 1] & 0xFFFF;
}

// An element is kept where its bits are at or above this: 0 for probability 0, else 1 to 65535.
RNG_FN uint32_t random_threshold(float probability) {
    double t = (double)probability * 65536 + 0.5;
    if (!(probability > 0)) return 0;
    return t < 1 ? 1 : t >= 65535 ? 65535 : (uint32_t)t;
}

// Factor of the elements that dropout keeps.
RNG_FN double random_scale(float probability) {
    return 65536.0 / (65536 - random_threshold(probability));
}

#endif

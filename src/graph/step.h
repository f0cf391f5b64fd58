// The step record: where training stands. It lives on the device, where operators read it and `advance` moves it on, so
// that a recorded step can be replayed without the host. The host writes it at the start of an epoch or an evaluation.
// Compiled by C and by nvcc.
#ifndef TRADEWIND_GRAPH_STEP_H
#define TRADEWIND_GRAPH_STEP_H

#include <stdint.h>

typedef struct step {
    uint64_t seed;
    uint64_t update;   // steps so far, whether or not the optimizer skipped them
    uint64_t first;    // the split: samples first .. first + count - 1
    uint64_t count;    //
    uint64_t position; // in the split, of the effective batch's first row
    uint64_t row;      // in the effective batch, of the micro-batch's first row
    uint32_t epoch;    // chooses the permutation
    uint32_t shuffle;  // 0: samples come in order
    float lr;
    float spare;
} step;

#endif

// The step record: where training stands, in two halves that live on the device. Operators read them and `advance`
// moves them on, so that a recorded step can be replayed without the host. Compiled by C and by nvcc.
//
// The progress lies in the store that is trained, and every program that trains it shares it. The cursor belongs to one
// program and says which samples are next: the host writes it at the start of an epoch or an evaluation. An evaluation
// has a cursor of its own, so it never moves the trainer's.
#ifndef TRADEWIND_GRAPH_STEP_H
#define TRADEWIND_GRAPH_STEP_H

#include <stdint.h>

typedef struct step_progress {
    uint64_t seed;
    uint64_t update; // steps so far, whether or not the optimizer skipped them
    float lr;
    float spare;
} step_progress;

enum { SPANS_MOST = 64 };

// Samples first .. first + count - 1, of which `before` come before them in their list.
typedef struct {
    uint64_t first, before;
} step_span;

typedef struct step_cursor {
    uint64_t count;    // samples in all spans
    uint64_t position; // among these samples, of the effective batch's first row
    uint64_t row;      // in the effective batch, of the micro-batch's first row
    uint32_t epoch;    // chooses the permutation
    uint32_t shuffle;  // 0: samples come in order
    uint32_t spans;    // 1 at least where there are samples
    step_span span[SPANS_MOST];
} step_cursor;

// Both halves as an operator sees them, in device memory.
typedef struct step {
    step_progress *progress;
    step_cursor *cursor;
} step;

// The sample at a position of the spans' list: the last span that begins at or before it has it.
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint64_t
    step_sample(const step_cursor *c, uint64_t at) {
    uint32_t low = 0, high = c->spans;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (c->span[middle].before <= at)
            low = middle;
        else
            high = middle;
    }
    return c->span[low].first + (at - c->span[low].before);
}

#endif

// Work of a training step, counted from its graph and its plan: the measure against which a time is judged.
#ifndef TRADEWIND_CLI_WORK_H
#define TRADEWIND_CLI_WORK_H

#include "graph/plan.h"

typedef struct {
    double flop;  // of products: 6 for every weight of a matrix and every row that it meets, 2 forward and 4 backward
    double bytes; // if every tensor went to memory and back once, see work_of_step
} work;

// The bytes are: activations, their gradients and what forward reserves for backward, written once and read once; the
// rows that are gathered, read once more; and 44 for every parameter (weights read three times and written once, its
// gradient written once and read twice, two moments read and written). Caches make a step move less, scratch more.
work work_of_step(const graph *g, const plan *p);

#endif

// The precision pass: gives every tensor its element type from its operator's class. Models never cast.
//
//   low     results in the run's low type (bf16 or fp16); its parameters have a copy in it (low_copy)
//   fp32    results in fp32 whatever comes in: losses, statistics, sums
//   follow  results in the type of the first floating-point input: moves, sums of two, dropout
//
// Gathered values whose readers all round them to the low type are stored in it (node.loose, node.rounds): the
// bits of everything else stay the same. Tensors that the host may read (graph_keep) stay fp32.
// Constants keep the type of their memory, parameters their fp32 master, states the type they were given. tf32 is a way
// of multiplying, not of storing, so it assigns what fp32 does. fp64 makes every fp32 tensor double; it exists for
// tests.
#ifndef TRADEWIND_GRAPH_DTYPE_H
#define TRADEWIND_GRAPH_DTYPE_H

#include "graph/graph.h"

const char *precision_name(precision p);

// By name; false where there is none. fp64 is no run's.
bool precision_find(const char *name, precision *p);

// Runs once, after the forward graph is built and before grad_build.
void dtype_assign(graph *g, precision p);

#endif

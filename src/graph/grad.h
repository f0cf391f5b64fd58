// Reverse-mode gradients: which nodes run backward, where gradients live, and who overwrites or adds.
//
// No gradient is ever cleared: of the nodes that contribute to a tensor's gradient, the first to run overwrites and the
// rest add. For parameters, "overwrite" holds in the first micro-batch of a step only; later ones add
// (graph/program.h).
#ifndef TRADEWIND_GRAPH_GRAD_H
#define TRADEWIND_GRAPH_GRAD_H

#include "graph/graph.h"

// Builds the backward pass from `root`. Its own gradient becomes a state tensor that the host fills: {scale, 0} for a
// loss (a sum and its normaliser), a random cotangent in a test. Every parameter must reach the root.
// Returns the root's gradient.
tensor grad_build(graph *g, tensor root);

#endif

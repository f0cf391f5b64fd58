// The graph's representation, for the passes inside graph/ alone.
#ifndef TRADEWIND_GRAPH_INTERNAL_H
#define TRADEWIND_GRAPH_INTERNAL_H

#include "base/arena.h"
#include "graph/graph.h"

struct graph {
    arena arena;
    tensor_info **tensor; // [tensors + 1]; entry 0 is "none"
    int tensors, tensor_room;
    node **node;
    int nodes, node_room;
    uint32_t number;    // of the next node
    const char *prefix; // of parameters' names, or NULL
    int segments;
    bool in_segment;
    tensor *parameter;
    int parameters, parameter_room;
    int64_t slab_elements;
    tensor slab[SLAB_COUNT];
    bool sealed;          // a slab was asked for: the layout is final
    bool tf32;            // the precision pass allowed it
    products_by products; // who computes large ones
    dtype low_type;       // of parameters' 16-bit copies
    dtype real_type;      // what DTYPE_F32 means for tensors added from now on: double in the precision that tests use
};

tensor_info *graph_edit(graph *g, tensor t);
tensor graph_tensor_add(graph *g, const char *name, role r, dtype type, shape s);

#endif

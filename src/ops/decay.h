// Shared by optimizers: which elements of the slabs weight decay acts on.
//
// A parameter starts at a multiple of SLAB_ALIGN elements, so a byte for every SLAB_ALIGN of them says it all. Where
// all decay there is no such table.
#ifndef TRADEWIND_OPS_DECAY_H
#define TRADEWIND_OPS_DECAY_H

#include "ops/op.h"

#ifdef OP_RULES

static inline tensor decay_table(graph *g, decay_scope scope) {
    if (scope == DECAY_ALL) return TENSOR_NONE;
    int64_t n = shape_count(op_shape(g, graph_slab(g, SLAB_WEIGHTS))) / SLAB_ALIGN;
    int8_t *decays = graph_memory(g, (size_t)n);
    for (int i = 0; i < graph_parameters(g); i++) {
        const tensor_info *t = graph_info(g, graph_parameter_at(g, i));
        int64_t first = t->offset / SLAB_ALIGN, end = (t->offset + shape_count(t->shape) - 1) / SLAB_ALIGN + 1;
        for (int64_t k = first; k < end; k++) decays[k] = graph_decays(g, graph_parameter_at(g, i));
    }
    return graph_constant(g, "decays", DTYPE_I8, shape1(n), decays);
}

#else

// True if element i decays.
static inline bool decay_at(const int8_t *decays, int64_t i) {
    return !decays || decays[i / SLAB_ALIGN];
}

// Where the elements from `begin` on cease to do as the first of them does.
static inline int64_t decay_run(const int8_t *decays, int64_t begin, int64_t end) {
    if (!decays) return end;
    int64_t i = (begin / SLAB_ALIGN + 1) * SLAB_ALIGN;
    while (i < end && decay_at(decays, i) == decay_at(decays, begin)) i += SLAB_ALIGN;
    return i < end ? i : end;
}

#endif
#endif

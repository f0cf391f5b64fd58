// Builders of all operators, generated from ops.def, and the types that their rows use.
#ifndef TRADEWIND_OPS_OPS_H
#define TRADEWIND_OPS_OPS_H

#include "graph/graph.h"
#include "ops/attr.h"

typedef enum {
#define OP(name, ...) OP_##name,
#include "ops/ops.def"
#undef OP
    OP_COUNT
} op;

// Each builder checks shapes (a mismatch is a programmer's mistake), appends a node and returns its first result.
#define OP(name, precision, ...) OP_PROTOTYPE(name, __VA_ARGS__);
#define OP_PROTOTYPE(name, ...)  tensor op_##name OP_ARGUMENTS(__VA_ARGS__)
#define OP_ARGUMENTS(...)        (graph * g, __VA_ARGS__)
#include "ops/ops.def"
#undef OP

const char *op_name(op o);
precision_class op_class(op o);

#endif

#include "ops/ops.h"

#include "ops/op.h"

const char *op_name(op o) {
    static const char *const names[] = {
#define OP(name, ...) #name,
#include "ops/ops.def"
#undef OP
    };
    return names[o];
}

precision_class op_class(op o) {
    static const precision_class classes[] = {
#define OP(name, precision, ...) CLASS_##precision,
#include "ops/ops.def"
#undef OP
    };
    return classes[o];
}

node *op_node(graph *g, op o, const tensor *input, int inputs) {
    return graph_node_add(g, (int)o, op_name(o), op_class(o), input, inputs);
}

shape op_shape(const graph *g, tensor t) {
    return graph_info(g, t)->shape;
}

// take: rows of a table.
//   table [N, C] or [N] (any type), index [R] (i32) -> [R, C] or [R], of the table's type
// An index outside the table is the programmer's mistake. No gradient flows to a table.
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_take(graph *g, tensor table, tensor index) {
    const tensor_info *t = graph_info(g, table);
    CHECK(graph_info(g, index)->type == DTYPE_I32, "take: the index must be i32");
    node *n = OP_NODE(g, take, table, index);
    shape s = t->shape;
    s.dim[0] = op_shape(g, index).dim[0];
    return graph_output_add(g, n, t->type, s);
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const operand *table = &c->in[0];
    const int32_t *index = c->in[1].data;
    int64_t N = table->shape.dim[0];
    size_t bytes = (size_t)(operand_count(table) / N) * dtype_bytes(table->type);
    for (int64_t r = begin; r < end; r++) {
        CHECK(index[r] >= 0 && index[r] < N, "take: row %d of %lld", (int)index[r], (long long)N);
        memcpy((char *)c->out[0].data + (size_t)r * bytes, (const char *)table->data + (size_t)index[r] * bytes, bytes);
    }
}

static void forward(const call *c) {
    op_for(c, c->in[1].shape.dim[0], operand_count(&c->in[0]) / c->in[0].shape.dim[0], forward_rows);
}

const kernel KERNEL(take) = {forward, NULL, NULL, NULL};

#endif

// take: rows of a table.
//   table [N, C] or [N], index [R] (i32) -> [R, C] or [R]
// A table of i32 or i64 gives its type; one of f32, f16 or i8 gives fp32 values, or those of the run's low type where
// only products read them. An index outside the table is the
// programmer's mistake. No gradient flows to a table.
#include "base/half.h"
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_take(graph *g, tensor table, tensor index) {
    const tensor_info *t = graph_info(g, table);
    CHECK(graph_info(g, index)->type == DTYPE_I32, "take: the index must be i32");
    node *n = OP_NODE(g, take, table, index);
    n->loose = 1;
    shape s = t->shape;
    s.dim[0] = op_shape(g, index).dim[0];
    return graph_output_add(g, n, t->type == DTYPE_F16 || t->type == DTYPE_I8 ? DTYPE_F32 : t->type, s);
}

#else

static void take_row(const operand *table, int64_t row, int64_t C, operand *out, int64_t to) {
    real *y = (real *)out->data + to * C;
    if (table->type == out->type) {
        size_t bytes = (size_t)C * dtype_bytes(table->type);
        memcpy((char *)out->data + (size_t)to * bytes, (const char *)table->data + (size_t)row * bytes, bytes);
    } else if (table->type == DTYPE_I8) {
        const int8_t *x = (const int8_t *)table->data + row * C;
        for (int64_t i = 0; i < C; i++) y[i] = (real)x[i];
    } else {
        const uint16_t *x = (const uint16_t *)table->data + row * C;
        for (int64_t i = 0; i < C; i++) y[i] = (real)half_widen(x[i]);
    }
}

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const operand *table = &c->in[0];
    const int32_t *index = c->in[1].data;
    int64_t N = table->shape.dim[0], C = operand_count(table) / N;
    for (int64_t r = begin; r < end; r++) {
        CHECK(index[r] >= 0 && index[r] < N, "take: row %d of %lld", (int)index[r], (long long)N);
        take_row(table, index[r], C, &c->out[0], r);
    }
}

static void forward(const call *c) {
    const operand *table = &c->in[0];
    bool known = table->type == c->out[0].type || table->type == DTYPE_I8 || table->type == DTYPE_F16;
    CHECK(known, "take: a table of %s", dtype_name(table->type));
    op_for(c, c->in[1].shape.dim[0], operand_count(table) / table->shape.dim[0], forward_rows);
}

const kernel KERNEL(take) = {forward, NULL, NULL, NULL};

#endif

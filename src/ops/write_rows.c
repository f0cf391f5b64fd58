// write_rows: rows into a table, at the cursor's row.
//   table [R, C] or [R] (changed in place), x [B, C] or [B] -> table
// Row r of x becomes row (cursor.row + r) of the table.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_write_rows(graph *g, tensor table, tensor x) {
    shape t = op_shape(g, table), s = op_shape(g, x);
    CHECK((t.rank == 2 ? t.dim[1] : 1) == (s.rank == 2 ? s.dim[1] : 1), "write_rows: rows of another width");
    node *n = OP_NODE(g, write_rows, table, x);
    graph_state_written_add(g, n, table);
    return table;
}

#else

static void put_rows(const call *c, int64_t begin, int64_t end) {
    int64_t B = c->in[1].shape.dim[0], C = operand_count(&c->in[1]) / B;
    const real *x = c->in[1].data;
    real *table = (real *)c->out[0].data + (int64_t)c->step.cursor->row * C;
    for (int64_t i = begin * C; i < end * C; i++) table[i] = x[i];
}

static void forward(const call *c) {
    int64_t B = c->in[1].shape.dim[0];
    CHECK((int64_t)c->step.cursor->row + B <= c->out[0].shape.dim[0], "write_rows: row %lld and %lld more of %lld",
        (long long)c->step.cursor->row, (long long)B, (long long)c->out[0].shape.dim[0]);
    op_for(c, B, operand_count(&c->in[1]) / B, put_rows);
}

const kernel KERNEL(write_rows) = {forward, NULL, NULL, NULL};

#endif

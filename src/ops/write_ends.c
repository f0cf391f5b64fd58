// write_ends: rows of episodes that were truncated, in the order of their coming, into a table.
//   table [K * B, C] (changed in place), x [B, C], end [B] (env_end) -> table, count [N] (i32, a state)
// Row r of x, where end[r] is ENV_TRUNCATED, becomes row (k B + r) of the table, k the truncations of r since the
// cursor's row was 0. More than K of them is the programmer's mistake.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_write_ends(graph *g, tensor table, tensor x, tensor end) {
    CHECK(op_shape(g, table).dim[1] == op_shape(g, x).dim[1], "write_ends: rows of another width");
    node *n = OP_NODE(g, write_ends, table, x, end);
    graph_state_written_add(g, n, table);
    graph_state_output_add(g, n, "ends", DTYPE_I32, shape1(BATCH));
    return table;
}

#else

static void put_rows(const call *c, int64_t begin, int64_t end) {
    int64_t B = c->in[1].shape.dim[0], C = c->in[1].shape.dim[1], K = c->out[0].shape.dim[0] / B;
    const real *x = c->in[1].data, *ends = c->in[2].data;
    int32_t *count = c->out[1].data;
    for (int64_t r = begin; r < end; r++) {
        if (!c->step.cursor->row) count[r] = 0;
        if (ends[r] != ENV_TRUNCATED) continue;
        CHECK(count[r] < K, "write_ends: more than %lld episodes were truncated", (long long)K);
        real *to = (real *)c->out[0].data + (count[r]++ * B + r) * C;
        for (int64_t i = 0; i < C; i++) to[i] = x[r * C + i];
    }
}

static void forward(const call *c) {
    op_for(c, c->in[1].shape.dim[0], c->in[1].shape.dim[1], put_rows);
}

const kernel KERNEL(write_ends) = {forward, NULL, NULL, NULL};

#endif

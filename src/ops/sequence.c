// sequence: steps of a table that lie a fixed number of rows apart.
//   table [T * N, C] or [T * N], index [B] (i32) -> [B, T, C] or [B, T]
// Step t of row b is row t N + index[b] of the table. No gradient flows to a table.
#include "ops/op.h"

#include <string.h>

#ifdef OP_RULES

tensor op_sequence(graph *g, tensor table, tensor index, int64_t steps) {
    shape t = op_shape(g, table);
    int64_t B = op_shape(g, index).dim[0];
    CHECK(t.dim[0] % steps == 0, "sequence: %lld rows are not %lld steps", (long long)t.dim[0], (long long)steps);
    node *n = OP_NODE(g, sequence, table, index);
    return graph_output_add(g, n, DTYPE_F32, t.rank == 2 ? shape3(B, steps, t.dim[1]) : shape2(B, steps));
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    int64_t T = c->out[0].shape.dim[1], N = c->in[0].shape.dim[0] / T, C = operand_count(&c->in[0]) / (T * N);
    const int32_t *index = c->in[1].data;
    for (int64_t b = begin; b < end; b++) {
        CHECK(index[b] >= 0 && index[b] < N, "sequence: row %d of %lld", (int)index[b], (long long)N);
        for (int64_t t = 0; t < T; t++)
            memcpy((real *)c->out[0].data + (b * T + t) * C, (const real *)c->in[0].data + (t * N + index[b]) * C,
                (size_t)C * sizeof(real));
    }
}

static void forward(const call *c) {
    int64_t B = c->out[0].shape.dim[0];
    op_for(c, B, operand_count(&c->out[0]) / B, forward_rows);
}

const kernel KERNEL(sequence) = {forward, NULL, NULL, NULL};

#endif

// draw: the samples of the micro-batch's rows, from the step record alone.
//   -> index [rows] (i32), weight [rows]: 1, or 0 for rows beyond the last sample
// Row r is the sample at place p(position + row + r) of the cursor's spans, where p is the epoch's permutation or,
// without shuffling, the identity. Rows of weight 0 repeat the first sample, so that what is gathered for them is valid
// memory.
#include "base/rng.h"
#include "ops/op.h"

#ifdef OP_RULES

tensor op_draw(graph *g, int64_t rows) {
    node *n = op_node(g, OP_draw, NULL, 0);
    tensor index = graph_output_add(g, n, DTYPE_I32, shape1(rows));
    graph_output_add(g, n, DTYPE_F32, shape1(rows));
    return index;
}

#else

static void forward_rows(const call *c, int64_t begin, int64_t end) {
    const step_cursor *s = c->step.cursor;
    uint64_t seed = c->step.progress->seed;
    int32_t *index = c->out[0].data;
    real *weight = c->out[1].data;
    for (int64_t r = begin; r < end; r++) {
        uint64_t at = s->position + s->row + (uint64_t)r;
        bool inside = at < s->count;
        uint64_t place = inside ? at : 0;
        if (inside && s->shuffle) place = rng_permute(seed, s->epoch, at, s->count);
        index[r] = (int32_t)step_sample(s, place);
        weight[r] = inside;
    }
}

static void forward(const call *c) {
    op_for(c, operand_count(&c->out[0]), 256, forward_rows);
}

const kernel KERNEL(draw) = {forward, NULL, NULL, NULL};

#endif

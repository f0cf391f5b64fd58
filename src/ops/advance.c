// advance: moves the step record on.
//   after a micro-batch (PHASE_AFTER): row += the micro-batch's rows
//   after an update (PHASE_UPDATE): update += 1; position += row; row = 0
// It must be the last node of its phase.
#include "ops/op.h"

#ifdef OP_RULES

tensor op_advance(graph *g, phase when) {
    CHECK(when != PHASE_FORWARD, "advance runs after a micro-batch or in the update");
    node *n = op_node(g, OP_advance, NULL, 0);
    advance_attr a = {when == PHASE_AFTER};
    graph_attr_add(g, n, &a, sizeof a);
    n->phase = when;
    return TENSOR_NONE;
}

#else

static void forward(const call *c) {
    step_cursor *s = c->step.cursor;
    if (((const advance_attr *)c->attr)->after_micro) {
        s->row += (uint64_t)c->batch;
    } else {
        c->step.progress->update++;
        s->position += s->row;
        s->row = 0;
    }
}

const kernel KERNEL(advance) = {forward, NULL, NULL, NULL};

#endif

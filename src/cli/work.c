#include "cli/work.h"

enum { PASSES = 11, FLOP = 6 };

static double bytes_of(const graph *g, tensor t, int64_t batch) {
    const tensor_info *i = graph_info(g, t);
    return (double)shape_count(shape_resolve(i->shape, batch)) * (double)dtype_bytes(i->type);
}

// Every matrix among a node's parameters meets every row of its first input: B of them, or B times T.
static double products(const graph *g, const node *n, int64_t batch) {
    double weights = 0;
    for (int i = 1; i < n->inputs; i++) {
        if (!n->input[i].id) continue;
        const tensor_info *t = graph_info(g, n->input[i]);
        if (t->role == ROLE_PARAMETER && t->shape.rank == 2) weights += (double)shape_count(t->shape);
    }
    if (weights == 0) return 0;
    shape x = shape_resolve(graph_info(g, n->input[0])->shape, batch);
    int64_t rows = shape_count(x) / shape_last(x);
    return FLOP * weights * (double)rows;
}

static bool gathers(const graph *g, const node *n) {
    return n->inputs > 0 && n->input[0].id && graph_info(g, n->input[0])->role == ROLE_CONSTANT;
}

work work_of_step(const graph *g, const plan *p) {
    work w = {.bytes = (double)graph_parameter_values(g) * sizeof(float) * PASSES};
    for (int i = 0; i < graph_nodes(g); i++) {
        const node *n = graph_node(g, i);
        w.flop += products(g, n, p->batch);
        if (gathers(g, n)) w.bytes += bytes_of(g, n->output[0], p->batch);
    }
    for (int b = 0; b < p->blocks; b++)
        if (p->owner[b].kind != OWNER_SCRATCH) w.bytes += 2 * (double)p->block[b].used;
    return w;
}

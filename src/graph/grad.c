#include "graph/grad.h"

#include "base/err.h"
#include "graph/internal.h"

// reach[t]: some parameter lies upstream of tensor t through inputs that pass gradients.
static bool *mark_reach(graph *g) {
    bool *reach = arena_array(&g->arena, (size_t)g->tensors + 1, sizeof *reach);
    for (int i = 0; i < g->parameters; i++) reach[g->parameter[i].id] = true;
    for (int i = 0; i < g->nodes; i++) {
        const node *n = g->node[i];
        bool any = false;
        for (int k = 0; k < n->inputs; k++) any |= (n->flows >> k & 1) && n->input[k].id && reach[n->input[k].id];
        for (int k = 0; k < n->outputs; k++)
            if (dtype_is_float(graph_info(g, n->output[k])->type)) reach[n->output[k].id] = any;
    }
    return reach;
}

static tensor gradient_add(graph *g, tensor t) {
    const tensor_info *of = graph_info(g, t);
    bool parameter = of->role == ROLE_PARAMETER;
    tensor d = graph_tensor_add(g, of->name, parameter ? ROLE_PARAMETER_GRADIENT : ROLE_GRADIENT, of->type, of->shape);
    graph_edit(g, d)->offset = of->offset;
    graph_edit(g, t)->gradient = d;
    return d;
}

static void flow_through(graph *g, node *n, const bool *reach) {
    bool asked = false;
    for (int k = 0; k < n->outputs; k++) asked |= graph_gradient(g, n->output[k]).id != 0;
    if (!asked) return;
    for (int k = 0; k < n->inputs; k++) {
        tensor t = n->input[k];
        if (!(n->flows >> k & 1) || !t.id || !reach[t.id]) continue;
        n->flow[k] = graph_gradient(g, t).id ? FLOW_ADD : FLOW_WRITE;
        if (n->flow[k] == FLOW_WRITE) gradient_add(g, t);
        n->backward = true;
    }
}

tensor grad_build(graph *g, tensor root) {
    bool *reach = mark_reach(g);
    CHECK(reach[root.id], "the root of the gradient depends on no parameter");
    const tensor_info *of = graph_info(g, root);
    tensor seed = graph_tensor_add(g, "root gradient", ROLE_STATE, of->type, of->shape);
    graph_edit(g, root)->gradient = seed;
    for (int i = g->nodes - 1; i >= 0; i--)
        if (g->node[i]->phase == PHASE_FORWARD) flow_through(g, g->node[i], reach);
    for (int i = 0; i < g->parameters; i++)
        CHECK(graph_gradient(g, g->parameter[i]).id, "parameter %s does not reach the loss",
            graph_info(g, g->parameter[i])->name);
    graph_slab(g, SLAB_GRADIENTS);
    return seed;
}

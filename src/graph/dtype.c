#include "graph/dtype.h"

#include "base/err.h"
#include "graph/internal.h"

#include <string.h>

const char *precision_name(precision p) {
    static const char *const names[] = {"fp32", "tf32", "bf16", "fp16", "fp64"};
    return names[p];
}

bool precision_find(const char *name, precision *p) {
    for (int i = 0; i < PRECISION_FP64; i++)
        if (strcmp(name, precision_name((precision)i)) == 0) {
            *p = (precision)i;
            return true;
        }
    return false;
}

static dtype low_type(precision p) {
    return p == PRECISION_BF16 ? DTYPE_BF16 : p == PRECISION_FP16 ? DTYPE_F16 : DTYPE_F32;
}

static dtype followed(const graph *g, const node *n) {
    for (int i = 0; i < n->inputs; i++) {
        if (!n->input[i].id) continue;
        dtype t = graph_info(g, n->input[i])->type;
        if (dtype_is_float(t)) return t;
    }
    return DTYPE_F32;
}

static void assign_node(graph *g, const node *n, precision p) {
    dtype low = low_type(p);
    dtype result = n->precision == CLASS_LOW ? low : n->precision == CLASS_FP32 ? DTYPE_F32 : followed(g, n);
    for (int k = 0; k < n->outputs; k++) {
        tensor_info *t = graph_edit(g, n->output[k]);
        if (t->role == ROLE_ACTIVATION && t->type == DTYPE_F32 && !(n->wide >> k & 1)) t->type = result;
    }
    if (n->precision != CLASS_LOW || low == DTYPE_F32) return;
    for (int i = 0; i < n->inputs; i++) {
        if (!n->input[i].id) continue;
        tensor_info *t = graph_edit(g, n->input[i]);
        if (t->role != ROLE_PARAMETER) continue;
        t->low_copy = true;
        g->low_type = low;
    }
}

// True if a tensor has readers, and all of them read it in the low type.
static bool read_low(const graph *g, tensor t) {
    int readers = 0;
    for (int i = 0; i < g->nodes; i++) {
        const node *n = g->node[i];
        for (int k = 0; k < n->inputs; k++) {
            if (n->input[k].id != t.id) continue;
            if (n->precision != CLASS_LOW || !(n->rounds >> k & 1)) return false;
            readers++;
        }
    }
    return readers > 0;
}

static void loosen_node(graph *g, const node *n, dtype low) {
    for (int k = 0; k < n->outputs; k++) {
        tensor_info *t = graph_edit(g, n->output[k]);
        if (!(n->loose >> k & 1) || t->role != ROLE_ACTIVATION || t->type != DTYPE_F32 || t->kept) continue;
        if (read_low(g, n->output[k])) t->type = low;
    }
}

void dtype_assign(graph *g, precision p) {
    g->tf32 = p == PRECISION_TF32;
    if (p == PRECISION_FP64) {
        g->real_type = DTYPE_F64;
        for (int i = 1; i <= g->tensors; i++)
            if (g->tensor[i]->type == DTYPE_F32) g->tensor[i]->type = DTYPE_F64;
        return;
    }
    for (int i = 0; i < g->nodes; i++) assign_node(g, g->node[i], p);
    for (int i = 0; i < g->nodes; i++) loosen_node(g, g->node[i], low_type(p));
}

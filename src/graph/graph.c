#include "graph/graph.h"

#include "base/err.h"
#include "graph/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETER_NAME_MOST = 256 };

graph *graph_new(void) {
    graph *g = calloc(1, sizeof *g);
    NEED(g, "out of memory for a graph");
    g->real_type = g->low_type = DTYPE_F32;
    arena_init(&g->arena);
    graph_tensor_add(g, "none", ROLE_STATE, DTYPE_F32, shape1(0));
    g->tensors = 0;
    return g;
}

void graph_free(graph *g) {
    if (!g) return;
    free(g->tensor);
    free(g->node);
    free(g->parameter);
    arena_done(&g->arena);
    free(g);
}

static void *grown(void *array, int used, int *room, size_t size) {
    if (used < *room) return array;
    *room = *room ? *room * 2 : 64;
    array = realloc(array, (size_t)*room * size);
    NEED(array, "out of memory for a graph of %d entries", *room);
    return array;
}

static bool is_named(const graph *g, role r, const char *name) {
    for (int i = 1; i <= g->tensors; i++)
        if (g->tensor[i]->role == r && strcmp(g->tensor[i]->name, name) == 0) return true;
    return false;
}

// A state's or a constant's name, with a number behind it where it is taken.
static const char *unique_name(graph *g, role r, const char *name) {
    if ((r != ROLE_STATE && r != ROLE_CONSTANT) || !g->tensors || !is_named(g, r, name))
        return arena_text(&g->arena, name);
    for (int n = 2;; n++) {
        const char *numbered = arena_format(&g->arena, "%s.%d", name, n);
        if (!is_named(g, r, numbered)) return numbered;
    }
}

tensor graph_tensor_add(graph *g, const char *name, role r, dtype type, shape s) {
    int id = g->tensor ? g->tensors + 1 : 0;
    g->tensor = grown(g->tensor, id, &g->tensor_room, sizeof *g->tensor);
    tensor_info *t = arena_take(&g->arena, sizeof *t);
    t->given = arena_text(&g->arena, name);
    t->name = unique_name(g, r, name);
    t->role = r;
    t->type = t->data_type = type == DTYPE_F32 ? g->real_type : type;
    t->shape = s;
    t->producer = -1;
    g->tensor[id] = t;
    g->tensors = id;
    return (tensor){id};
}

tensor_info *graph_edit(graph *g, tensor t) {
    CHECK(t.id > 0 && t.id <= g->tensors, "tensor %d of %d", t.id, g->tensors);
    return g->tensor[t.id];
}

const tensor_info *graph_info(const graph *g, tensor t) {
    CHECK(t.id > 0 && t.id <= g->tensors, "tensor %d of %d", t.id, g->tensors);
    return g->tensor[t.id];
}

tensor graph_constant(graph *g, const char *name, dtype type, shape s, const void *data) {
    tensor t = graph_tensor_add(g, name, ROLE_CONSTANT, type, s);
    graph_edit(g, t)->data = data;
    graph_edit(g, t)->data_type = type;
    return t;
}

tensor graph_parameter(graph *g, const char *name, shape s, init begin) {
    char full[PARAMETER_NAME_MOST];
    CHECK(!g->sealed, "parameter %s added after a slab was used", name);
    if (g->prefix) {
        int n = snprintf(full, sizeof full, "%s%s", g->prefix, name);
        CHECK(n > 0 && n < PARAMETER_NAME_MOST, "parameter name %s%s is too long", g->prefix, name);
        name = full;
    }
    CHECK(!graph_parameter_named(g, name).id, "two parameters named %s", name);
    tensor t = graph_tensor_add(g, name, ROLE_PARAMETER, DTYPE_F32, s);
    tensor_info *info = graph_edit(g, t);
    info->init = begin;
    info->offset = g->slab_elements;
    int64_t n = shape_count(s);
    CHECK(n > 0, "parameter %s has no elements", name);
    // Padding is zero from the start and no kernel writes it, hence it adds nothing to a norm.
    g->slab_elements += (n + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
    g->parameter = grown(g->parameter, g->parameters, &g->parameter_room, sizeof *g->parameter);
    g->parameter[g->parameters++] = t;
    return t;
}

void graph_prefix(graph *g, const char *prefix) {
    g->prefix = prefix;
}

void graph_begins(graph *g, tensor parameter, init begin) {
    CHECK(graph_info(g, parameter)->role == ROLE_PARAMETER, "tensor %d is no parameter", parameter.id);
    graph_edit(g, parameter)->init = begin;
}

void graph_undecayed(graph *g, tensor parameter) {
    CHECK(graph_info(g, parameter)->role == ROLE_PARAMETER, "tensor %d is no parameter", parameter.id);
    graph_edit(g, parameter)->undecayed = true;
}

bool graph_decays(const graph *g, tensor parameter) {
    const tensor_info *t = graph_info(g, parameter);
    return t->shape.rank > 1 && !t->undecayed;
}

void *graph_memory(graph *g, size_t bytes) {
    return arena_take(&g->arena, bytes);
}

tensor graph_state(graph *g, const char *name, dtype type, shape s) {
    return graph_tensor_add(g, name, ROLE_STATE, type, s);
}

tensor graph_slab(graph *g, slab_kind kind) {
    static const char *const names[] = {"weights", "gradients", "moment1", "moment2"};
    if (g->slab[kind].id) return g->slab[kind]; // written once: threads that share a graph may ask
    g->sealed = true;
    g->slab[kind] = graph_tensor_add(g, names[kind], ROLE_SLAB, DTYPE_F32, shape1(g->slab_elements));
    graph_edit(g, g->slab[kind])->slab = kind;
    return g->slab[kind];
}

void graph_share(graph *g, tensor constant) {
    CHECK(graph_info(g, constant)->role == ROLE_CONSTANT, "tensor %d is no constant", constant.id);
    graph_edit(g, constant)->shared = true;
}

void graph_normaliser(graph *g, tensor state) {
    CHECK(graph_info(g, state)->role == ROLE_STATE, "tensor %d is no state", state.id);
    graph_edit(g, state)->normaliser = true;
}

void graph_keep(graph *g, tensor t) {
    graph_edit(g, t)->kept = true;
}

void graph_number_from(graph *g, uint32_t number) {
    g->number = number;
}

void graph_segment_begin(graph *g) {
    g->segments++;
    g->in_segment = true;
}

void graph_segment_end(graph *g) {
    g->in_segment = false;
}

int graph_segments(const graph *g) {
    return g->segments;
}

node *graph_node_add(graph *g, int op, const char *name, precision_class precision, const tensor *input, int inputs) {
    CHECK(inputs <= INPUTS_MOST, "%s has %d inputs", name, inputs);
    node *n = arena_take(&g->arena, sizeof *n);
    n->op = op;
    n->name = name;
    n->number = g->number++;
    n->precision = precision;
    n->segment = g->in_segment ? g->segments : 0;
    n->inputs = inputs;
    n->input = arena_array(&g->arena, (size_t)inputs, sizeof *n->input);
    if (inputs) memcpy(n->input, input, (size_t)inputs * sizeof *input);
    n->output = arena_array(&g->arena, OUTPUTS_MOST, sizeof *n->output);
    n->flow = arena_array(&g->arena, (size_t)inputs, sizeof *n->flow);
    g->node = grown(g->node, g->nodes, &g->node_room, sizeof *g->node);
    g->node[g->nodes++] = n;
    return n;
}

static tensor output_add(graph *g, node *n, const char *name, role r, dtype type, shape s) {
    CHECK(n->outputs < OUTPUTS_MOST, "%s has too many outputs", n->name);
    tensor t = graph_tensor_add(g, name, r, type, s);
    graph_edit(g, t)->producer = g->nodes - 1;
    n->output[n->outputs++] = t;
    return t;
}

tensor graph_output_add(graph *g, node *n, dtype type, shape s) {
    return output_add(g, n, "", ROLE_ACTIVATION, type, s);
}

tensor graph_state_output_add(graph *g, node *n, const char *name, dtype type, shape s) {
    return output_add(g, n, name, ROLE_STATE, type, s);
}

void graph_state_written_add(graph *g, node *n, tensor state) {
    CHECK(n->outputs < OUTPUTS_MOST, "%s has too many outputs", n->name);
    CHECK(graph_info(g, state)->role == ROLE_STATE, "%s writes tensor %d, which is no state", n->name, state.id);
    n->output[n->outputs++] = state;
}

void *graph_attr_add(graph *g, node *n, const void *attr, size_t bytes) {
    void *copy = arena_take(&g->arena, bytes);
    memcpy(copy, attr, bytes);
    n->attr = copy;
    return copy;
}

int graph_tensors(const graph *g) {
    return g->tensors;
}

int graph_nodes(const graph *g) {
    return g->nodes;
}

const node *graph_node(const graph *g, int i) {
    CHECK(i >= 0 && i < g->nodes, "node %d of %d", i, g->nodes);
    return g->node[i];
}

double graph_products(const graph *g, const node *n, int64_t batch) {
    double sum = 0;
    if (!n->inputs || !n->input[0].id) return 0;
    shape x = shape_resolve(graph_info(g, n->input[0])->shape, batch);
    for (int k = 1; k < n->inputs; k++) {
        const tensor_info *t = n->input[k].id ? graph_info(g, n->input[k]) : NULL;
        if (t && t->role == ROLE_PARAMETER) sum += (double)shape_count(t->shape);
    }
    return sum * (double)shape_count(x) / (double)shape_last(x);
}

tensor graph_gradient(const graph *g, tensor t) {
    return graph_info(g, t)->gradient;
}

tensor graph_sibling(const graph *g, tensor t, int k) {
    const node *n = graph_node(g, graph_info(g, t)->producer);
    CHECK(k >= 0 && k < n->outputs, "output %d of %s, which has %d", k, n->name, n->outputs);
    return n->output[k];
}

bool graph_tf32(const graph *g) {
    return g->tf32;
}

void graph_multiply_by(graph *g, products_by p) {
    g->products = p;
}

products_by graph_multiplies_by(const graph *g) {
    return g->products;
}

dtype graph_low_type(const graph *g) {
    return g->low_type;
}

int graph_parameters(const graph *g) {
    return g->parameters;
}

tensor graph_parameter_at(const graph *g, int i) {
    CHECK(i >= 0 && i < g->parameters, "parameter %d of %d", i, g->parameters);
    return g->parameter[i];
}

tensor graph_parameter_named(const graph *g, const char *name) {
    for (int i = 0; i < g->parameters; i++)
        if (strcmp(g->tensor[g->parameter[i].id]->name, name) == 0) return g->parameter[i];
    return TENSOR_NONE;
}

int64_t graph_parameter_values(const graph *g) {
    int64_t n = 0;
    for (int i = 0; i < g->parameters; i++) n += shape_count(g->tensor[g->parameter[i].id]->shape);
    return n;
}

int64_t graph_slab_elements(const graph *g) {
    return g->slab_elements;
}

bool graph_uses_slab(const graph *g, slab_kind kind) {
    return g->slab[kind].id != 0;
}

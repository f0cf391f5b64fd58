#include "graph/store.h"

#include "base/arena.h"
#include "base/err.h"
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

static const char *const slab_names[SLAB_COUNT] = {"weights", "gradients", "moment1", "moment2"};

// A parameter, as a piece of the slabs.
typedef struct {
    const char *name;
    shape shape;
    int64_t offset; // elements
} piece;

typedef struct {
    const char *name;
    store_kind kind;
    role role; // ROLE_SLAB, ROLE_STATE or ROLE_CONSTANT
    dtype type, data_type;
    shape shape;
    const void *data; // ROLE_CONSTANT: the caller's
    bool in_place;    // read there
    bool normaliser;
    size_t at, bytes;
} entry;

struct store {
    bool host_memory;
    size_t bytes, bytes_of[STORE_KINDS];
    arena arena;
    entry *entry;
    int entries, entry_room;
    piece *piece;
    int pieces;
    int64_t elements; // of a slab
    dtype real_type;  // of the slabs
    dtype low_type;   // of the 16-bit copy, as it is now; DTYPE_F32: there is none
    size_t low_at, progress_at;
    bool progresses; // it has a progress
    queue *q;
    space *in;
    unsigned char *memory;
};

store *store_new(bool host_memory) {
    store *s = calloc(1, sizeof *s);
    NEED(s, "out of memory for a store");
    s->host_memory = host_memory;
    s->low_type = DTYPE_F32;
    arena_init(&s->arena);
    return s;
}

void store_free(store *s) {
    if (!s) return;
    if (s->memory) space_give(s->in, s->memory);
    free(s->entry);
    arena_done(&s->arena);
    free(s);
}

// Description

static entry *find(const store *s, role r, const char *name) {
    for (int i = 0; i < s->entries; i++)
        if (s->entry[i].role == r && strcmp(s->entry[i].name, name) == 0) return &s->entry[i];
    return NULL;
}

static const piece *find_piece(const store *s, const char *name) {
    for (int i = 0; i < s->pieces; i++)
        if (strcmp(s->piece[i].name, name) == 0) return &s->piece[i];
    return NULL;
}

// Graphs of one model in two precisions make constants of the same values, each in memory of its own.
static bool is_same(const entry *a, const tensor_info *t) {
    if (a->type != t->type || !shape_equal(a->shape, t->shape)) return false;
    if (t->role != ROLE_CONSTANT || a->data == t->data) return true;
    size_t bytes = (size_t)shape_count(t->shape) * dtype_bytes(t->data_type);
    return !t->shared && a->data_type == t->data_type && memcmp(a->data, t->data, bytes) == 0;
}

static void entry_add(store *s, store_kind kind, const tensor_info *t) {
    const entry *there = find(s, t->role, t->name);
    CHECK(!there || is_same(there, t), "%s is in a store with another type, shape or memory", t->name);
    if (there) return;
    CHECK(!s->memory, "%s is added to a store that has its memory", t->name);
    if (s->entries == s->entry_room) {
        s->entry_room = s->entry_room ? 2 * s->entry_room : 32;
        s->entry = realloc(s->entry, (size_t)s->entry_room * sizeof *s->entry);
        NEED(s->entry, "out of memory for a store of %d tensors", s->entry_room);
    }
    entry e = {.name = t->name, .kind = kind, .role = t->role, .type = t->type, .data_type = t->data_type};
    e.shape = t->shape;
    e.data = t->role == ROLE_CONSTANT ? t->data : NULL;
    e.in_place = t->role == ROLE_CONSTANT && s->host_memory && t->type == t->data_type;
    e.normaliser = t->normaliser;
    e.bytes = e.in_place ? 0 : (size_t)shape_count(t->shape) * dtype_bytes(t->type);
    s->entry[s->entries++] = e;
}

// The first graph with parameters decides how they lie; others have to have those that they share in the same shape.
static void pieces_add(store *s, const graph *g) {
    int n = graph_parameters(g);
    for (int i = 0; s->pieces && i < n; i++) {
        const tensor_info *t = graph_info(g, graph_parameter_at(g, i));
        const piece *p = find_piece(s, t->name);
        CHECK(p && shape_equal(p->shape, t->shape), "parameter %s is not in the store, or has another shape", t->name);
    }
    if (s->pieces || !n) return;
    s->piece = arena_array(&s->arena, (size_t)n, sizeof *s->piece);
    for (int i = 0; i < n; i++) {
        const tensor_info *t = graph_info(g, graph_parameter_at(g, i));
        s->piece[s->pieces++] = (piece){t->name, t->shape, t->offset};
    }
    s->elements = graph_slab_elements(g);
    s->real_type = graph_info(g, graph_parameter_at(g, 0))->type;
}

static void slab_add(store *s, slab_kind kind) {
    static const store_kind kinds[] = {STORE_WEIGHTS, STORE_GRADIENTS, STORE_MOMENTS, STORE_MOMENTS};
    tensor_info t = {.name = slab_names[kind], .role = ROLE_SLAB, .type = s->real_type, .shape = shape1(s->elements)};
    entry_add(s, kinds[kind], &t);
}

// States with a row for each of a batch are a program's own.
static void tensor_add(store *s, const graph *g, tensor t, bool dataset) {
    if (!t.id) return;
    const tensor_info *info = graph_info(g, t);
    CHECK(info->role != ROLE_CONSTANT || !shape_is_batch(info->shape), "constant %s has a row for each of a batch",
        info->name);
    if (shape_is_batch(info->shape)) return;
    if (info->role == ROLE_STATE && !dataset) entry_add(s, STORE_STATES, info);
    if (info->role == ROLE_CONSTANT && info->shared == dataset) entry_add(s, STORE_CONSTANTS, info);
}

static void tensors_add(store *s, const graph *g, store_purpose purpose) {
    for (int i = 0; i < graph_nodes(g); i++) {
        const node *n = graph_node(g, i);
        if (n->phase == PHASE_UPDATE && purpose == STORE_FOR_INFERENCE) continue;
        for (int k = 0; k < n->inputs; k++) tensor_add(s, g, n->input[k], purpose == STORE_FOR_DATASET);
        for (int k = 0; k < n->outputs; k++) tensor_add(s, g, n->output[k], purpose == STORE_FOR_DATASET);
    }
    // The root of the gradient is no node's output.
    for (int i = 1; i <= graph_tensors(g) && purpose == STORE_FOR_TRAINING; i++)
        if (graph_info(g, (tensor){i})->role == ROLE_STATE) tensor_add(s, g, (tensor){i}, false);
}

static size_t take(store *s, store_kind kind, size_t bytes) {
    size_t here = s->bytes;
    s->bytes += plan_aligned(bytes);
    s->bytes_of[kind] += plan_aligned(bytes);
    return here;
}

static void lay_kind(store *s, store_kind kind, bool normaliser) {
    for (int i = 0; i < s->entries; i++) {
        entry *e = &s->entry[i];
        if (e->kind == kind && e->normaliser == normaliser) e->at = take(s, kind, e->bytes);
    }
}

static void lay_out(store *s) {
    s->bytes = 0;
    memset(s->bytes_of, 0, sizeof s->bytes_of);
    lay_kind(s, STORE_WEIGHTS, false);
    if (s->low_type != DTYPE_F32) s->low_at = take(s, STORE_WEIGHTS, (size_t)s->elements * dtype_bytes(s->low_type));
    lay_kind(s, STORE_GRADIENTS, false);
    lay_kind(s, STORE_STATES, true);
    lay_kind(s, STORE_MOMENTS, false);
    if (s->progresses) s->progress_at = take(s, STORE_STATES, sizeof(step_progress));
    lay_kind(s, STORE_STATES, false);
    lay_kind(s, STORE_CONSTANTS, false);
}

static void parameters_add(store *s, const graph *g, store_purpose purpose) {
    pieces_add(s, g);
    for (int k = 0; s->pieces && k < SLAB_COUNT; k++)
        if (k == SLAB_WEIGHTS || (purpose == STORE_FOR_TRAINING && graph_uses_slab(g, (slab_kind)k)))
            slab_add(s, (slab_kind)k);
    if (s->low_type == DTYPE_F32) s->low_type = graph_low_type(g);
}

void store_add(store *s, const graph *g, store_purpose purpose) {
    tensors_add(s, g, purpose);
    if (purpose != STORE_FOR_DATASET) {
        parameters_add(s, g, purpose);
        s->progresses = true;
    }
    lay_out(s);
}

size_t store_bytes(const store *s) {
    return s->bytes;
}

size_t store_bytes_of(const store *s, store_kind kind) {
    return s->bytes_of[kind];
}

// Placing

static bool write_wide(store *s, const entry *e, err *why) {
    CHECK(e->type == DTYPE_F64 && e->data_type == DTYPE_F32, "constant %s: no conversion from %s to %s", e->name,
        dtype_name(e->data_type), dtype_name(e->type));
    const float *from = e->data;
    double *wide = malloc(e->bytes);
    if (!wide) return err_run(why, "out of memory for %zu bytes of constants", e->bytes);
    for (int64_t i = 0; i < shape_count(e->shape); i++) wide[i] = from[i];
    bool ok = space_device(s->in)->write(s->q, s->memory + e->at, wide, e->bytes, why);
    free(wide);
    return ok;
}

static bool write_constants(store *s, err *why) {
    const device *d = space_device(s->in);
    for (int i = 0; i < s->entries; i++) {
        const entry *e = &s->entry[i];
        if (e->role != ROLE_CONSTANT || e->in_place) continue;
        bool ok =
            e->type == e->data_type ? d->write(s->q, s->memory + e->at, e->data, e->bytes, why) : write_wide(s, e, why);
        if (!ok) return false;
    }
    return true;
}

bool store_place(store *s, queue *q, space *in, err *e) {
    CHECK(!s->memory, "a store is placed twice");
    s->q = q;
    s->in = in;
    if (!s->bytes) return true;
    s->memory = space_take(in, "a store", s->bytes, e);
    size_t cleared = s->bytes - s->bytes_of[STORE_CONSTANTS];
    return s->memory && space_device(in)->fill(q, s->memory, 0, cleared, e) && write_constants(s, e);
}

// Addresses

static const piece *piece_of(const store *s, const tensor_info *t) {
    const piece *p = find_piece(s, t->name);
    CHECK(!p || shape_equal(p->shape, t->shape), "parameter %s has another shape in the store", t->name);
    return p;
}

static void *slab_address(const store *s, slab_kind kind) {
    const entry *e = find(s, ROLE_SLAB, slab_names[kind]);
    return e ? s->memory + e->at : NULL;
}

static void *piece_address(const store *s, slab_kind kind, const tensor_info *t) {
    const piece *p = piece_of(s, t);
    unsigned char *slab = p ? slab_address(s, kind) : NULL;
    return slab ? slab + (size_t)p->offset * dtype_bytes(s->real_type) : NULL;
}

static void *entry_address(const store *s, const tensor_info *t) {
    const entry *e = find(s, t->role, t->name);
    if (!e) return NULL;
    CHECK(is_same(e, t), "%s is in the store with another type, shape or memory", t->name);
    return e->in_place ? (void *)(uintptr_t)e->data : s->memory + e->at;
}

void *store_address(const store *s, const graph *g, tensor t) {
    const tensor_info *info = graph_info(g, t);
    switch (info->role) {
    case ROLE_PARAMETER: return piece_address(s, SLAB_WEIGHTS, info);
    case ROLE_PARAMETER_GRADIENT: return piece_address(s, SLAB_GRADIENTS, info);
    case ROLE_SLAB:
        CHECK(info->shape.dim[0] == s->elements, "a slab of %lld elements in a store of %lld",
            (long long)info->shape.dim[0], (long long)s->elements);
        return slab_address(s, info->slab);
    case ROLE_STATE:
    case ROLE_CONSTANT: return entry_address(s, info);
    case ROLE_ACTIVATION:
    case ROLE_GRADIENT: break;
    }
    return NULL;
}

void *store_low_address(const store *s, const graph *g, tensor t) {
    const tensor_info *info = graph_info(g, t);
    bool all = info->role == ROLE_SLAB && info->slab == SLAB_WEIGHTS;
    if (graph_low_type(g) == DTYPE_F32 || s->low_type == DTYPE_F32 || !(all || info->low_copy)) return NULL;
    const piece *p = all ? NULL : piece_of(s, info);
    if (!all && !p) return NULL;
    return s->memory + s->low_at + (p ? (size_t)p->offset * dtype_bytes(s->low_type) : 0);
}

step_progress *store_progress(const store *s) {
    return (step_progress *)(void *)(s->memory + s->progress_at);
}

// Moving tensors

static void *lasting(const store *s, const graph *g, tensor t, size_t *bytes) {
    const tensor_info *info = graph_info(g, t);
    CHECK(info->role != ROLE_CONSTANT, "constant %s is moved", info->name);
    void *at = store_address(s, g, t);
    CHECK(at, "tensor %d (%s) is in no store, or does not outlive a step", t.id, info->name);
    *bytes = (size_t)shape_count(info->shape) * dtype_bytes(info->type);
    return at;
}

// The 16-bit copy of a parameter, or of all, after the parameter has changed.
static bool follow(store *s, const graph *g, tensor t, err *e) {
    void *low = store_low_address(s, g, t);
    size_t count = (size_t)shape_count(graph_info(g, t)->shape);
    return !low || space_device(s->in)->narrow(s->q, low, s->low_type, store_address(s, g, t), count, e);
}

bool store_write(store *s, const graph *g, tensor t, const void *from, err *e) {
    size_t bytes;
    void *at = lasting(s, g, t, &bytes);
    return space_device(s->in)->write(s->q, at, from, bytes, e) && follow(s, g, t, e);
}

bool store_read(store *s, const graph *g, tensor t, void *to, err *e) {
    size_t bytes;
    void *at = lasting(s, g, t, &bytes);
    return space_device(s->in)->read(s->q, to, at, bytes, e);
}

bool store_clear(store *s, const graph *g, tensor t, err *e) {
    size_t bytes;
    void *at = lasting(s, g, t, &bytes);
    return space_device(s->in)->fill(s->q, at, 0, bytes, e) && follow(s, g, t, e);
}

bool store_progress_write(store *s, const step_progress *p, err *e) {
    return space_device(s->in)->write(s->q, store_progress(s), p, sizeof *p, e);
}

bool store_progress_read(store *s, step_progress *p, err *e) {
    return space_device(s->in)->read(s->q, p, store_progress(s), sizeof *p, e);
}

bool store_narrow(store *s, const graph *g, err *e) {
    dtype low = graph_low_type(g);
    if (low == DTYPE_F32) return true;
    CHECK(s->low_type != DTYPE_F32, "a store without room for 16-bit copies");
    s->low_type = low;
    return space_device(s->in)->narrow(
        s->q, s->memory + s->low_at, low, slab_address(s, SLAB_WEIGHTS), (size_t)s->elements, e);
}

bool store_copy(store *to, const store *from, err *e) {
    const device *d = space_device(to->in);
    unsigned char *weights = slab_address(to, SLAB_WEIGHTS), *source = slab_address(from, SLAB_WEIGHTS);
    CHECK(to->real_type == from->real_type, "stores of different precision");
    for (int i = 0; i < to->pieces; i++) {
        const piece *p = &to->piece[i], *of = find_piece(from, p->name);
        size_t element = dtype_bytes(to->real_type), bytes = (size_t)shape_count(p->shape) * element;
        CHECK(of && shape_equal(of->shape, p->shape), "parameter %s is not in both stores", p->name);
        if (!d->write(to->q, weights + (size_t)p->offset * element, source + (size_t)of->offset * element, bytes, e))
            return false;
    }
    if (to->low_type == DTYPE_F32) return true;
    return d->narrow(to->q, to->memory + to->low_at, to->low_type, (float *)(void *)weights, (size_t)to->elements, e);
}

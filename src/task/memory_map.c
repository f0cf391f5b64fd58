#include "task/memory_map.h"

#include "run/results.h"

#include <stdlib.h>

// The owner of a block: its kind, and a name for people.
static json_t *block_json(const plan *p, const graph *g, int i) {
    const plan_block *b = &p->block[i];
    plan_owner w = p->owner[i];
    const char *kind = "scratch", *name;
    if (w.kind == OWNER_TENSOR) {
        const tensor_info *t = graph_info(g, (tensor){w.id});
        kind = t->role == ROLE_GRADIENT ? "gradient" : "activation";
        name = t->name && t->name[0] ? t->name : t->producer >= 0 ? graph_node(g, t->producer)->name : "unnamed";
    } else if (w.kind == OWNER_RESERVE) {
        kind = "reserve";
        name = graph_node(g, w.id)->name;
    } else {
        name = i == p->update_scratch ? "update" : graph_node(g, p->list[w.id].node)->name;
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:I}", "name", name, "kind", kind, "first", b->first, "last", b->last,
        "offset", (json_int_t)b->offset, "bytes", (json_int_t)b->bytes);
}

// Smallest size of a block that is kept: the largest RESULTS_POINTS_MOST are.
static int by_size(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x < y) - (x > y);
}

static size_t least_kept(const plan *p) {
    if (p->blocks <= RESULTS_POINTS_MOST) return 0;
    size_t *bytes = malloc((size_t)p->blocks * sizeof *bytes);
    NEED(bytes, "out of memory for a picture of memory");
    for (int i = 0; i < p->blocks; i++) bytes[i] = p->block[i].bytes;
    qsort(bytes, (size_t)p->blocks, sizeof *bytes, by_size);
    size_t least = bytes[RESULTS_POINTS_MOST - 1];
    free(bytes);
    return least;
}

static json_t *blocks_json(const plan *p, const graph *g) {
    json_t *list = json_array();
    size_t least = least_kept(p);
    for (int i = 0; i < p->blocks && json_array_size(list) < RESULTS_POINTS_MOST; i++)
        if (p->block[i].bytes >= least && p->block[i].bytes) json_array_append_new(list, block_json(p, g, i));
    return list;
}

static json_t *bytes_json(const memory_map *map) {
    const engine_memory *m = &map->bytes;
    const budget *b = map->budget;
    json_t *doc = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "data", (json_int_t)m->data, "weights",
        (json_int_t)m->weights, "gradients", (json_int_t)m->gradients, "moments", (json_int_t)m->moments, "states",
        (json_int_t)m->states, "staging", (json_int_t)m->staging, "activations", (json_int_t)m->activations, "tables",
        (json_int_t)m->recordings, "fallback", (json_int_t)m->fallback);
    if (!b || !b->limited) return doc;
    json_object_set_new(doc, "base", json_integer((json_int_t)b->base));
    json_object_set_new(doc, "copies", json_integer((json_int_t)(b->host ? map->demand.ring + map->demand.copies : 0)));
    json_object_set_new(doc, "rest", json_integer((json_int_t)budget_beside(b, &map->demand)));
    return doc;
}

// Bytes that the blocks may take under the limit, beside all else.
static size_t room_of(const memory_map *m) {
    size_t least = budget_least(m->budget, &m->demand);
    return m->bytes.activations + (m->budget->limit > least ? m->budget->limit - least : 0);
}

// The first instruction of the backward pass; all of them where there is none.
static int backward_of(const plan *p) {
    int i = 0;
    while (i < p->instructions && !p->list[i].backward) i++;
    return i;
}

bool memory_map_write(const char *dir, const memory_map *m, log_file *log, err *why) {
    const plan *p = m->plan;
    json_t *doc = json_pack("{s:I, s:i, s:i, s:I, s:I, s:o, s:o}", "rows", (json_int_t)p->batch, "instructions",
        p->instructions, "backward", backward_of(p), "peak", (json_int_t)p->peak, "floor", (json_int_t)p->floor,
        "blocks", blocks_json(p, m->graph), "bytes", bytes_json(m));
    if (m->budget && m->budget->limited) json_object_set_new(doc, "room", json_integer((json_int_t)room_of(m)));
    if (results_write(dir, RESULTS_MEMORY, doc, why)) return true;
    log_line(log, "warning: %s", why->text);
    return false;
}

#include "graph/solo.h"

#include "base/err.h"

#include <stdlib.h>

struct solo {
    const device *d;
    queue *q;
    const graph *g;
    program *train, *evaluate;
    store *store, *data;
    transient transient;
    space *space;
};

static solo *describe(const device *d, const queue *q, const graph *g, const solo_options *o) {
    solo *x = calloc(1, sizeof *x);
    NEED(x, "out of memory for a graph by itself");
    x->g = g;
    program_options p = {.graph = g, .rows = o->rows, .passes = PASS_BIT(PASS_EVALUATE), .guard = o->guard};
    if (o->inference) p.together = o->together;
    x->store = store_new(d->host_memory);
    x->data = store_new(d->host_memory);
    store_add(x->store, g, o->inference ? STORE_FOR_INFERENCE : STORE_FOR_TRAINING);
    store_add(x->data, g, STORE_FOR_DATASET);
    x->evaluate = program_new(d, q, &p);
    transient_fit(&x->transient, x->evaluate);
    if (o->inference) return x;
    p.passes = PASSES_OF_TRAINING;
    p.together = o->together;
    p.recompute = o->recompute;
    x->train = program_new(d, q, &p);
    transient_fit(&x->transient, x->train);
    return x;
}

static size_t bytes_of(const solo *x) {
    return space_aligned(store_bytes(x->store)) + space_aligned(store_bytes(x->data)) +
           space_aligned(x->transient.bytes) + space_aligned(program_own(x->evaluate)) +
           (x->train ? space_aligned(program_own(x->train)) : 0);
}

size_t solo_measure(const device *d, queue *q, const graph *g, const solo_options *o) {
    solo *x = describe(d, q, g, o);
    size_t bytes = bytes_of(x);
    solo_free(x);
    return bytes;
}

static bool place(solo *x, err *e) {
    x->space = space_new(x->d, x->q, bytes_of(x), e);
    if (!x->space || !store_place(x->store, x->q, x->space, e) || !store_place(x->data, x->q, x->space, e))
        return false;
    if (!transient_place(&x->transient, x->space, e)) return false;
    program_place at = {.queue = x->q, .space = x->space, .transient = &x->transient, .store = {x->store, x->data}};
    return (!x->train || program_ready(x->train, &at, e)) && program_ready(x->evaluate, &at, e);
}

solo *solo_new(const device *d, queue *q, const graph *g, const solo_options *o, err *e) {
    solo *x = describe(d, q, g, o);
    x->d = d;
    x->q = q;
    if (place(x, e)) return x;
    solo_free(x);
    return NULL;
}

void solo_free(solo *x) {
    if (!x) return;
    program_free(x->train);
    program_free(x->evaluate);
    transient_give(&x->transient);
    store_free(x->store);
    store_free(x->data);
    space_free(x->space);
    free(x);
}

size_t solo_bytes(const solo *x) {
    return space_bytes(x->space);
}

program *solo_program(solo *x, bool training) {
    return training ? x->train : x->evaluate;
}

bool solo_play(solo *x, pass which, err *e) {
    program *p = solo_program(x, which != PASS_EVALUATE);
    CHECK(p, "pass %d of an inference graph", (int)which);
    return program_play(p, which, e);
}

bool solo_play_steps(solo *x, int64_t steps, err *e) {
    return program_play_steps(x->train, steps, e);
}

bool solo_write(solo *x, tensor t, const void *from, err *e) {
    bool of_both = x->train && shape_is_batch(graph_info(x->g, t)->shape);
    return program_write(x->evaluate, t, from, e) && (!of_both || program_write(x->train, t, from, e));
}

bool solo_read(solo *x, tensor t, void *to, err *e) {
    return program_read(x->evaluate, t, to, e);
}

bool solo_clear(solo *x, tensor t, err *e) {
    return program_clear(x->evaluate, t, e);
}

bool solo_peek(solo *x, tensor t, bool training, void *to, err *e) {
    return program_peek(solo_program(x, training), t, to, e);
}

bool solo_step_write(solo *x, const solo_step *s, err *e) {
    step_progress p = {.seed = s->seed, .update = s->update, .lr = s->lr};
    step_cursor c = {
        .count = s->count, .position = s->position, .row = s->row, .epoch = s->epoch, .shuffle = s->shuffle};
    c.spans = 1;
    c.span[0].first = s->first;
    return store_progress_write(x->store, &p, e) && program_seek(x->evaluate, &c, e) &&
           (!x->train || program_seek(x->train, &c, e));
}

bool solo_step_read(solo *x, solo_step *s, err *e) {
    step_progress p;
    step_cursor c;
    if (!store_progress_read(x->store, &p, e) || !program_cursor(x->train ? x->train : x->evaluate, &c, e))
        return false;
    *s = (solo_step){.seed = p.seed,
        .update = p.update,
        .first = c.span[0].first,
        .count = c.count,
        .position = c.position,
        .row = c.row,
        .epoch = c.epoch,
        .shuffle = c.shuffle,
        .lr = p.lr};
    return true;
}

bool solo_poison(solo *x, int byte, bool training, err *e) {
    return program_poison(solo_program(x, training), byte, e);
}

bool solo_guards_whole(solo *x, bool training, err *e) {
    return program_guards_whole(solo_program(x, training), e);
}

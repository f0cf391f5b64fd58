#include "train/engine.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { PRECISIONS = 2 };

// A job in one precision.
typedef struct {
    const job *job;
    program *steps, *evaluation;
} gear;

struct engine {
    engine_options o;
    gear gear[PRECISIONS]; // as given, and the fallback's
    int gears, now;
    store *store, *data;
    feed *feed;
    transient transient;
    space *own; // NULL until it is placed
};

static program_options options(const engine *x, const job *j, bool evaluation) {
    program_options o = {.graph = j->g, .rows = x->o.rows, .feed = x->feed};
    o.passes = evaluation ? PASS_BIT(PASS_EVALUATE) : PASSES_OF_TRAINING;
    if (evaluation) return o;
    o.recompute = x->o.recompute;
    o.together = x->o.together;
    return o;
}

static void add_gear(engine *x, const job *j) {
    CHECK(x->gears < PRECISIONS, "a fallback that has a fallback");
    gear *g = &x->gear[x->gears++];
    g->job = j;
    store_add(x->store, j->g, x->o.inference ? STORE_FOR_INFERENCE : STORE_FOR_TRAINING);
    program_options steps = options(x, j, false), evaluation = options(x, j, true);
    if (!x->o.inference) g->steps = program_new(x->o.device, x->o.queue, &steps);
    g->evaluation = program_new(x->o.device, x->o.queue, &evaluation);
    if (g->steps) transient_fit(&x->transient, g->steps);
    transient_fit(&x->transient, g->evaluation);
}

engine *engine_new(const job *j, const engine_options *o) {
    engine *x = calloc(1, sizeof *x);
    NEED(x, "out of memory for an engine");
    x->o = *o;
    x->store = store_new(o->device->host_memory);
    if (j->host) x->feed = feed_new(o->device->host_memory, j->feed, j->feeds, j->feed_bytes);
    for (; j; j = j->fallback) add_gear(x, j);
    return x;
}

void engine_free(engine *x) {
    if (!x) return;
    for (int i = 0; i < x->gears; i++) {
        program_free(x->gear[i].steps);
        program_free(x->gear[i].evaluation);
    }
    transient_give(&x->transient);
    feed_free(x->feed);
    store_free(x->store);
    space_free(x->own);
    free(x);
}

// Measuring

// Bytes of the transient region that a gear needs.
static size_t gear_transient(const gear *g) {
    transient t = {0};
    if (g->steps) transient_fit(&t, g->steps);
    transient_fit(&t, g->evaluation);
    return t.bytes;
}

// Bytes of a gear's own memory.
static size_t gear_bytes(const gear *g) {
    size_t steps = g->steps ? space_aligned(program_own(g->steps)) : 0;
    return steps + space_aligned(program_own(g->evaluation));
}

static size_t most_gear_bytes(const engine *x) {
    size_t most = 0;
    for (int i = 0; i < x->gears; i++) most = gear_bytes(&x->gear[i]) > most ? gear_bytes(&x->gear[i]) : most;
    return most;
}

engine_memory engine_measure(const engine *x) {
    const gear *g = &x->gear[0];
    const plan *p = program_plan(g->steps ? g->steps : g->evaluation);
    store *data = engine_data(g->job, x->o.device->host_memory);
    engine_memory m = {.weights = store_bytes_of(x->store, STORE_WEIGHTS),
        .gradients = store_bytes_of(x->store, STORE_GRADIENTS),
        .moments = store_bytes_of(x->store, STORE_MOMENTS),
        .states = store_bytes_of(x->store, STORE_STATES) + store_bytes_of(x->store, STORE_CONSTANTS),
        .staging = feed_bytes(x->feed),
        .activations = gear_transient(g),
        .recordings = gear_bytes(g),
        .data = store_bytes(data),
        .floor = p->floor};
    m.own = space_aligned(store_bytes(x->store)) + space_aligned(m.staging) + space_aligned(x->transient.bytes);
    m.own += most_gear_bytes(x);
    m.fallback = space_aligned(x->transient.bytes) - space_aligned(m.activations) + most_gear_bytes(x) - m.recordings;
    m.total = m.own + space_aligned(m.data);
    store_free(data);
    return m;
}

engine_memory engine_measure_job(const job *j, const engine_options *o) {
    engine *x = engine_new(j, o);
    engine_memory m = engine_measure(x);
    engine_free(x);
    return m;
}

store *engine_data(const job *j, bool host_memory) {
    store *s = store_new(host_memory);
    store_add(s, j->g, STORE_FOR_DATASET);
    return s;
}

// Placing

static bool ready(engine *x, gear *g, err *e) {
    program_place at = {.queue = x->o.queue, .space = x->own, .transient = &x->transient, .store = {x->store, x->data}};
    return (!g->steps || program_ready(g->steps, &at, e)) && program_ready(g->evaluation, &at, e);
}

bool engine_place(engine *x, space *in, store *data, err *e) {
    CHECK(!x->own, "an engine is placed twice");
    x->data = data;
    x->own = space_within(in, "an engine", engine_measure(x).own, e);
    return x->own && store_place(x->store, x->o.queue, x->own, e) &&
           (!x->feed || feed_place(x->feed, x->o.queue, x->own, e)) && transient_place(&x->transient, x->own, e) &&
           ready(x, &x->gear[x->now], e);
}

bool engine_change(engine *x, const job *to, err *e) {
    gear *was = &x->gear[x->now];
    int next = 0;
    while (next < x->gears && x->gear[next].job != to) next++;
    CHECK(next < x->gears, "a job that the engine was not made for");
    if (next == x->now) return true;
    if (!x->o.device->sync(x->o.queue, e)) return false;
    if (was->steps) program_rest(was->steps);
    program_rest(was->evaluation);
    x->now = next;
    return store_narrow(x->store, to->g, e) && ready(x, &x->gear[next], e);
}

const job *engine_job(const engine *x) {
    return x->gear[x->now].job;
}

const job *engine_find(const engine *x, const char *precision) {
    for (int i = 0; i < x->gears; i++)
        if (!precision || strcmp(precision_name(x->gear[i].job->precision), precision) == 0) return x->gear[i].job;
    return NULL;
}

store *engine_store(engine *x) {
    return x->store;
}

program *engine_steps(engine *x) {
    return x->gear[x->now].steps;
}

program *engine_evaluation(engine *x) {
    return x->gear[x->now].evaluation;
}

feed *engine_feed(engine *x) {
    return x->feed;
}

#include "graph/program.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

// Devices with their own memory may run independent calls side by side, and join neighbours into one launch: these must
// not share scratch.
enum { GUARD_BYTE = 0xA5, LINGER = 3, LINGER_RECOMPUTED = 1, LINGER_LONG = 8, LINGER_SMALL = 40 };

struct program {
    const device *d;
    const graph *g;
    program_options o;
    arena arena; // of the description
    arena bound; // of the calls with their addresses; empty while the program rests
    plan *plan;
    int tensors;                  // of the graph when the program was described: a slab may be asked for later
    size_t *home;                 // [tensors + 1] offset of states of its own, in its own memory
    bool *own;                    // [tensors + 1]
    size_t own_bytes, room_bytes; // the room lies at the end
    program_place at;
    unsigned char *memory;
    room *room;
    int lane; // that calls are being bound to
    call *calls[LANES][PASSES];
    int count[LANES][PASSES];
    recording *recorded[LANES][PASSES];
};

static bool has(const program *p, pass which) {
    return p->o.passes >> which & 1;
}

static bool trains(const program *p) {
    return !has(p, PASS_EVALUATE);
}

// Passes that read a micro-batch are recorded for every lane.
static bool reads_lane(pass which) {
    return which == PASS_FIRST || which == PASS_NEXT || which == PASS_EVALUATE;
}

// Description

// A program that recomputes has little memory.
static plan *plan_of(program *p, const device *d, const kernel *const *kernels) {
    bool host = d->host_memory;
    plan_options o = {.batch = p->o.rows, .training = trains(p), .guard = p->o.guard, .again = p->o.recompute};
    o.update_only = p->o.passes == PASS_BIT(PASS_UPDATE);
    o.linger = host ? 0 : p->o.recompute ? LINGER_RECOMPUTED : LINGER;
    o.linger_long = host ? 0 : p->o.recompute ? LINGER_RECOMPUTED : LINGER_LONG;
    o.linger_small = host ? 0 : LINGER_SMALL;
    return plan_make(p->g, kernels, &o, &p->arena);
}

static size_t tensor_bytes(const program *p, const tensor_info *t) {
    return (size_t)shape_count(shape_resolve(t->shape, p->o.rows)) * dtype_bytes(t->type);
}

// The cursor, and states with a row for each of a batch unless they are fed.
static void lay_own(program *p) {
    p->tensors = graph_tensors(p->g);
    p->home = arena_array(&p->arena, (size_t)p->tensors + 1, sizeof *p->home);
    p->own = arena_array(&p->arena, (size_t)p->tensors + 1, sizeof *p->own);
    p->own_bytes = plan_aligned(sizeof(step_cursor));
    for (int i = 1; i <= p->tensors; i++) {
        const tensor_info *t = graph_info(p->g, (tensor){i});
        if (t->role != ROLE_STATE || !shape_is_batch(t->shape) || feed_has(p->o.feed, p->g, (tensor){i})) continue;
        p->own[i] = true;
        p->home[i] = p->own_bytes;
        p->own_bytes += plan_aligned(tensor_bytes(p, t));
    }
}

static int list_micro(const program *p, arena *a, call **list) {
    *list = arena_array(a, (size_t)p->plan->instructions + 1, sizeof **list);
    for (int i = 0; i < p->plan->instructions; i++) plan_call(p->plan, p->g, p->plan->list[i], a, *list + i);
    return p->plan->instructions;
}

static int list_update(const program *p, arena *a, call **list) {
    int n = 0;
    *list = arena_array(a, (size_t)graph_nodes(p->g) + 1, sizeof **list);
    for (int i = 0; i < graph_nodes(p->g); i++)
        if (graph_node(p->g, i)->phase == PHASE_UPDATE)
            plan_call(p->plan, p->g, (instruction){.node = i}, a, *list + n++);
    return n;
}

// Steps together repeat what first and update have, or evaluate, but the first and the last may be joined otherwise.
enum { TOGETHER_KINDS = 3 };

static void lay_room(program *p, const device *d, const queue *q) {
    call *micro, *end;
    arena a;
    if (!d->room_bytes) return;
    arena_init(&a);
    int micros = list_micro(p, &a, &micro), ends = list_update(p, &a, &end), more = p->o.together ? TOGETHER_KINDS : 0;
    int passes = has(p, PASS_FIRST) + has(p, PASS_NEXT) + has(p, PASS_EVALUATE);
    p->room_bytes = plan_aligned(d->room_bytes(q, micro, micros, passes * feed_lanes(p->o.feed) + more));
    if (has(p, PASS_UPDATE)) p->room_bytes += plan_aligned(d->room_bytes(q, end, ends, 1 + more));
    arena_done(&a);
}

program *program_new(const device *d, const queue *q, const program_options *o) {
    program *p = calloc(1, sizeof *p);
    NEED(p, "out of memory for a program");
    CHECK(!(o->passes & PASS_BIT(PASS_EVALUATE)) || o->passes == PASS_BIT(PASS_EVALUATE), "passes %#x", o->passes);
    CHECK(!o->feed || !o->together, "steps together of inputs that are fed one by one");
    p->d = d;
    p->g = o->graph;
    p->o = *o;
    if (o->together) p->o.passes |= PASS_BIT(PASS_TOGETHER);
    arena_init(&p->arena);
    arena_init(&p->bound);
    p->plan = plan_of(p, d, d->kernels(q));
    lay_own(p);
    lay_room(p, d, q);
    return p;
}

void program_free(program *p) {
    if (!p) return;
    program_rest(p);
    arena_done(&p->arena);
    free(p);
}

const plan *program_plan(const program *p) {
    return p->plan;
}

size_t program_transient(const program *p) {
    return p->plan->peak;
}

size_t program_own(const program *p) {
    return p->own_bytes + p->room_bytes;
}

void transient_fit(transient *t, const program *p) {
    CHECK(!t->memory, "a transient region grows after it was placed");
    if (program_transient(p) > t->bytes) t->bytes = program_transient(p);
}

bool transient_place(transient *t, space *in, err *e) {
    t->in = in;
    if (!t->bytes) return true;
    t->memory = space_take(in, "activations", t->bytes, e);
    return t->memory != NULL;
}

void transient_give(transient *t) {
    if (t->memory) space_give(t->in, t->memory);
    t->memory = NULL;
}

// Addresses

static void *planned(const program *p, int block) {
    return block < 0 ? NULL : (unsigned char *)p->at.transient->memory + p->plan->block[block].offset;
}

static void *in_stores(const program *p, tensor t, void *(*look)(const store *, const graph *, tensor)) {
    for (int i = 0; i < PROGRAM_STORES_MOST; i++) {
        void *found = p->at.store[i] ? look(p->at.store[i], p->g, t) : NULL;
        if (found) return found;
    }
    return NULL;
}

static bool is_own(const program *p, tensor t) {
    return t.id <= p->tensors && p->own[t.id];
}

static void *lasting(const program *p, tensor t) {
    if (is_own(p, t)) return p->memory + p->home[t.id];
    if (feed_has(p->o.feed, p->g, t)) return feed_address(p->o.feed, p->g, t, p->lane);
    void *at = in_stores(p, t, store_address);
    CHECK(at, "tensor %d (%s) is in none of the program's stores", t.id, graph_info(p->g, t)->name);
    return at;
}

static void *address(const program *p, instruction in, tensor t) {
    if (!t.id) return NULL;
    role r = graph_info(p->g, t)->role;
    bool moves = r == ROLE_ACTIVATION || r == ROLE_GRADIENT;
    return moves ? planned(p, plan_block_of(p->plan, p->g, in, t)) : lasting(p, t);
}

static void *low_address(const program *p, tensor t) {
    return t.id ? in_stores(p, t, store_low_address) : NULL;
}

// Binds the addresses of one call. Backward sees only what its node needs: the rest may be gone. In a step's first
// micro-batch, parameter gradients that the graph adds into across micro-batches are overwritten instead.
static void bind(const program *p, pass which, instruction in, call *c) {
    const node *n = graph_node(p->g, in.node);
    for (int i = 0; i < n->inputs; i++) {
        if (!c->backward || (n->needs & NEEDS_INPUT(i))) c->in[i].data = address(p, in, n->input[i]);
        c->in[i].low = low_address(p, n->input[i]);
        if (!c->backward || n->flow[i] == FLOW_NONE) continue;
        tensor d = graph_gradient(p->g, n->input[i]);
        c->din[i].data = address(p, in, d);
        bool parameter = graph_info(p->g, d)->role == ROLE_PARAMETER_GRADIENT;
        c->din[i].add = n->flow[i] == FLOW_ADD || (parameter && which == PASS_NEXT);
    }
    for (int i = 0; i < n->outputs; i++) {
        if (!c->backward || (n->needs & NEEDS_OUTPUT(i))) c->out[i].data = address(p, in, n->output[i]);
        if (c->backward) c->dout[i].data = address(p, in, graph_gradient(p->g, n->output[i]));
    }
    c->first = which != PASS_NEXT;
    c->step = (step){store_progress(p->at.store[0]), (step_cursor *)(void *)p->memory};
    c->queue = p->at.queue;
}

static void bind_micro(program *p, pass which) {
    call *list;
    p->count[p->lane][which] = list_micro(p, &p->bound, &list);
    p->calls[p->lane][which] = list;
    for (int i = 0; i < p->plan->instructions; i++) {
        instruction in = p->plan->list[i];
        call *c = &list[i];
        bind(p, which, in, c);
        c->scratch = planned(p, p->plan->of_scratch[i]);
        c->reserve = c->keeps ? planned(p, p->plan->of_reserve[in.node]) : NULL;
    }
}

static void bind_update(program *p) {
    call *list;
    int n = 0;
    p->count[p->lane][PASS_UPDATE] = list_update(p, &p->bound, &list);
    p->calls[p->lane][PASS_UPDATE] = list;
    for (int i = 0; i < graph_nodes(p->g); i++) {
        if (graph_node(p->g, i)->phase != PHASE_UPDATE) continue;
        call *c = &list[n++];
        bind(p, PASS_UPDATE, (instruction){.node = i}, c);
        c->scratch = planned(p, p->plan->update_scratch);
    }
}

// The calls of first and update, or those of evaluate, over and over.
static void repeat_steps(program *p) {
    pass begin = trains(p) ? PASS_FIRST : PASS_EVALUATE;
    int micro = p->count[p->lane][begin], update = p->count[p->lane][PASS_UPDATE], each = micro + update;
    call *to = arena_array(&p->bound, (size_t)each * (size_t)p->o.together, sizeof *to);
    for (int i = 0; i < p->o.together; i++) {
        memcpy(to + i * each, p->calls[p->lane][begin], (size_t)micro * sizeof *to);
        if (update) memcpy(to + i * each + micro, p->calls[p->lane][PASS_UPDATE], (size_t)update * sizeof *to);
    }
    p->calls[p->lane][PASS_TOGETHER] = to;
    p->count[p->lane][PASS_TOGETHER] = each * p->o.together;
}

static void bind_pass(program *p, pass which) {
    switch (which) {
    case PASS_UPDATE: bind_update(p); break;
    case PASS_TOGETHER: repeat_steps(p); break;
    default: bind_micro(p, which); break;
    }
}

// Recording

static bool record_lane(program *p, err *e) {
    for (int k = 0; k < PASSES; k++) {
        pass which = (pass)k;
        if (!has(p, which) || (p->lane && !reads_lane(which))) continue;
        bind_pass(p, which);
        p->recorded[p->lane][which] =
            p->d->record(p->at.queue, p->room, p->calls[p->lane][which], p->count[p->lane][which], e);
        if (!p->recorded[p->lane][which]) return false;
    }
    return true;
}

static bool record_all(program *p, err *e) {
    bool ok = true;
    for (p->lane = 0; ok && p->lane < feed_lanes(p->o.feed); p->lane++) ok = record_lane(p, e);
    p->lane = 0;
    return ok;
}

bool program_ready(program *p, const program_place *at, err *e) {
    CHECK(!p->memory, "a program is made ready twice");
    CHECK(program_transient(p) <= at->transient->bytes, "a transient region of %zu bytes for a program of %zu",
        at->transient->bytes, program_transient(p));
    p->at = *at;
    p->memory = space_take(at->space, "a program", program_own(p), e);
    if (!p->memory || !p->d->fill(at->queue, p->memory, 0, program_own(p), e)) return false;
    if (p->room_bytes) {
        p->room = p->d->room_open(at->queue, p->memory + p->own_bytes, p->room_bytes, e);
        if (!p->room) return false;
    }
    return record_all(p, e);
}

void program_rest(program *p) {
    for (int i = 0; i < LANES * PASSES; i++) {
        recording **r = &p->recorded[i / PASSES][i % PASSES];
        if (*r) p->d->forget(p->at.queue, *r);
        *r = NULL;
    }
    if (p->room) p->d->room_close(p->at.queue, p->room);
    if (p->memory) space_give(p->at.space, p->memory);
    p->room = NULL;
    p->memory = NULL;
    arena_done(&p->bound);
    arena_init(&p->bound);
}

// Playing

bool program_play(program *p, pass which, err *e) {
    recording *r = p->recorded[reads_lane(which) ? feed_lane(p->o.feed) : 0][which];
    CHECK(r, "pass %d, which the program does not have", (int)which);
    return p->d->play(p->at.queue, r, e);
}

bool program_play_steps(program *p, int64_t steps, err *e) {
    for (int n = p->o.together; n && steps >= n; steps -= n)
        if (!program_play(p, PASS_TOGETHER, e)) return false;
    for (; steps > 0; steps--) {
        if (!program_play(p, trains(p) ? PASS_FIRST : PASS_EVALUATE, e)) return false;
        if (trains(p) && !program_play(p, PASS_UPDATE, e)) return false;
    }
    return true;
}

// Products of a step's forward pass.
static double products(const graph *g, int64_t rows) {
    double sum = 0;
    for (int i = 0; i < graph_nodes(g); i++)
        if (graph_node(g, i)->phase == PHASE_FORWARD) sum += graph_products(g, graph_node(g, i), rows);
    return sum;
}

// 4e10 products are some six milliseconds of a fast card, and fifty of a slow one. As many steps as leave the fewest
// recordings to start, single steps among them.
int program_together(const device *d, const graph *g, int64_t rows, int64_t steps) {
    enum { MOST = 64, LEAST = 8 };
    double all = products(g, rows);
    int64_t most = all * MOST < 4e10 ? MOST : (int64_t)(4e10 / all), best = 0, fewest = steps;
    for (int64_t n = 2; n <= most && most >= LEAST; n++) {
        if (steps / n + steps % n >= fewest) continue;
        fewest = steps / n + steps % n;
        best = n;
    }
    return d->host_memory ? 0 : (int)best;
}

// Moving tensors

bool program_seek(program *p, const step_cursor *c, err *e) {
    return p->d->write(p->at.queue, p->memory, c, sizeof *c, e);
}

bool program_cursor(program *p, step_cursor *c, err *e) {
    return p->d->read(p->at.queue, c, p->memory, sizeof *c, e);
}

// The store that a tensor lies in; NULL: it is the program's own.
static store *store_of(const program *p, tensor t) {
    CHECK(!feed_has(p->o.feed, p->g, t), "tensor %d is fed", t.id);
    for (int i = 0; !is_own(p, t) && i < PROGRAM_STORES_MOST; i++)
        if (p->at.store[i] && store_address(p->at.store[i], p->g, t)) return p->at.store[i];
    CHECK(is_own(p, t), "tensor %d does not outlive a step", t.id);
    return NULL;
}

bool program_write(program *p, tensor t, const void *from, err *e) {
    store *s = store_of(p, t);
    if (s) return store_write(s, p->g, t, from, e);
    return p->d->write(p->at.queue, lasting(p, t), from, tensor_bytes(p, graph_info(p->g, t)), e);
}

bool program_read(program *p, tensor t, void *to, err *e) {
    store *s = store_of(p, t);
    if (s) return store_read(s, p->g, t, to, e);
    return p->d->read(p->at.queue, to, lasting(p, t), tensor_bytes(p, graph_info(p->g, t)), e);
}

bool program_clear(program *p, tensor t, err *e) {
    store *s = store_of(p, t);
    if (s) return store_clear(s, p->g, t, e);
    return p->d->fill(p->at.queue, lasting(p, t), 0, tensor_bytes(p, graph_info(p->g, t)), e);
}

bool program_peek(program *p, tensor t, void *to, err *e) {
    void *from = planned(p, p->plan->of_tensor[t.id]);
    CHECK(from && graph_info(p->g, t)->kept, "tensor %d is not kept", t.id);
    return p->d->read(p->at.queue, to, from, tensor_bytes(p, graph_info(p->g, t)), e);
}

// Guards

bool program_poison(program *p, int byte, err *e) {
    if (p->plan->peak && !p->d->fill(p->at.queue, p->at.transient->memory, GUARD_BYTE, p->plan->peak, e)) return false;
    for (int i = 0; i < p->plan->blocks; i++)
        if (!p->d->fill(p->at.queue, planned(p, i), byte, p->plan->block[i].used, e)) return false;
    return true;
}

static bool guard_whole(program *p, int i, unsigned char *seen, err *e) {
    size_t used = p->plan->block[i].used, guard = p->plan->block[i].bytes - used;
    if (!p->d->read(p->at.queue, seen, (unsigned char *)planned(p, i) + used, guard, e)) return false;
    for (size_t k = 0; k < guard; k++)
        if (seen[k] != GUARD_BYTE) return err_run(e, "byte %zu behind block %d was written", k, i);
    return true;
}

bool program_guards_whole(program *p, err *e) {
    if (!p->o.guard) return true;
    unsigned char *seen = malloc(p->o.guard + PLAN_ALIGN);
    if (!seen) return err_run(e, "out of memory for %zu bytes", p->o.guard);
    bool whole = true;
    for (int i = 0; whole && i < p->plan->blocks; i++) whole = guard_whole(p, i, seen, e);
    free(seen);
    return whole;
}

#include "graph/exec.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

// Devices with their own memory may run independent calls side by side, and join neighbours into one launch: they must
// not share scratch.
enum { GUARD_BYTE = 0xA5, LINGER = 3, LINGER_SMALL = 40 };

struct exec {
    const device *d;
    queue *q;
    const graph *g;
    exec_options options;
    arena arena;
    plan *train, *evaluate;
    exec_memory memory;
    size_t *home; // [tensors + 1] offset of tensors that live for the whole run; of fed ones, in lane 0
    bool *fed;    // [tensors + 1]
    size_t step_home, slab_home[SLAB_COUNT], low_home, planned_home, lane_home, lane_bytes;
    unsigned char *slab;
    int lanes;
    int lane; // that calls are bound to, then that the last feed went to
    call *calls[LANES][EXEC_PARTS];
    int count[LANES][EXEC_PARTS];
    recording *recorded[LANES][EXEC_PARTS];
};

static size_t take(size_t *at, size_t bytes) {
    size_t here = *at;
    *at += plan_aligned(bytes);
    return here;
}

static size_t tensor_bytes(const tensor_info *t, int64_t batch) {
    return (size_t)shape_count(shape_resolve(t->shape, batch)) * dtype_bytes(t->type);
}

// A constant is read where the caller has it, unless the device cannot see it or wants another type.
static bool copied(const tensor_info *t, bool host_memory) {
    return t->role == ROLE_CONSTANT && (!host_memory || t->type != t->data_type);
}

// Layout

static bool has_low(const exec *x) {
    return graph_low_type(x->g) != DTYPE_F32;
}

static void lay_slabs(exec *x, size_t *at) {
    const graph *g = x->g;
    dtype type = graph_parameters(g) ? graph_info(g, graph_parameter_at(g, 0))->type : DTYPE_F32;
    size_t bytes = (size_t)graph_slab_elements(g) * dtype_bytes(type);
    for (int k = 0; k < SLAB_COUNT; k++) {
        bool used = k == SLAB_WEIGHTS || (!x->options.inference && graph_uses_slab(g, (slab_kind)k));
        x->slab_home[k] = take(at, used ? bytes : 0);
        size_t *sum = k == SLAB_WEIGHTS     ? &x->memory.weights
                      : k == SLAB_GRADIENTS ? &x->memory.gradients
                                            : &x->memory.moments;
        if (used) *sum += plan_aligned(bytes);
    }
    size_t low = has_low(x) ? (size_t)graph_slab_elements(g) * dtype_bytes(graph_low_type(g)) : 0;
    x->low_home = take(at, low);
    x->memory.weights += plan_aligned(low);
}

// What is fed, in one block a lane.
static void lay_lanes(exec *x, bool host_memory, size_t *at) {
    const exec_options *o = &x->options;
    CHECK(!o->inputs || !o->together, "steps together of inputs that are fed one by one");
    x->lanes = o->inputs && !host_memory ? LANES : 1;
    x->lane_bytes = plan_aligned(o->input_bytes);
    x->lane_home = take(at, (size_t)x->lanes * x->lane_bytes);
    x->memory.staging = *at - x->lane_home;
    for (int i = 0; i < o->inputs; i++) {
        const exec_input *in = &o->input[i];
        const tensor_info *t = graph_info(x->g, in->state);
        CHECK(t->role == ROLE_STATE && in->at % PLAN_ALIGN == 0 && in->at + tensor_bytes(t, o->batch) <= o->input_bytes,
            "%s cannot be fed from byte %zu of %zu", t->name, in->at, o->input_bytes);
        x->home[in->state.id] = x->lane_home + in->at;
        x->fed[in->state.id] = true;
    }
}

static void lay_tensors(exec *x, bool host_memory, size_t *at) {
    for (int i = 1; i <= graph_tensors(x->g); i++) {
        const tensor_info *t = graph_info(x->g, (tensor){i});
        if (t->role == ROLE_STATE && !x->fed[i]) x->home[i] = take(at, tensor_bytes(t, x->options.batch));
    }
    size_t before = *at;
    for (int i = 1; i <= graph_tensors(x->g); i++) {
        const tensor_info *t = graph_info(x->g, (tensor){i});
        if (copied(t, host_memory)) x->home[i] = take(at, tensor_bytes(t, x->options.batch));
    }
    x->memory.constants = *at - before;
}

plan *exec_planned(
    const graph *g, const kernel *const *kernels, bool host_memory, const exec_options *o, bool training, arena *a) {
    plan_options p = {.batch = o->batch, .training = training, .guard = o->guard, .again = o->again};
    p.linger = host_memory ? 0 : LINGER;
    p.linger_small = host_memory ? 0 : LINGER_SMALL;
    return plan_make(g, kernels, &p, a);
}

// Everything that follows from the graph, the kernels and the options; nothing that needs a device.
static void lay_out(exec *x, const kernel *const *kernels, bool host_memory) {
    const exec_options *o = &x->options;
    if (!o->inference) x->train = exec_planned(x->g, kernels, host_memory, o, true, &x->arena);
    x->evaluate = exec_planned(x->g, kernels, host_memory, o, false, &x->arena);
    x->home = arena_array(&x->arena, (size_t)graph_tensors(x->g) + 1, sizeof *x->home);
    x->fed = arena_array(&x->arena, (size_t)graph_tensors(x->g) + 1, sizeof *x->fed);
    size_t at = 0;
    lay_slabs(x, &at);
    lay_lanes(x, host_memory, &at);
    size_t before = at;
    x->step_home = take(&at, sizeof(step));
    lay_tensors(x, host_memory, &at);
    x->memory.states = at - before - x->memory.constants;
    x->planned_home = at;
    size_t peak = x->evaluate->peak;
    if (x->train && x->train->peak > peak) peak = x->train->peak;
    x->memory.activations = peak;
    x->memory.floor = x->train ? x->train->floor : x->evaluate->floor;
    x->memory.total = at + peak > x->options.room ? at + peak : x->options.room;
}

exec_memory exec_measure(const graph *g, const kernel *const *kernels, bool host_memory, const exec_options *o) {
    exec x = {.g = g, .options = *o};
    arena_init(&x.arena);
    lay_out(&x, kernels, host_memory);
    arena_done(&x.arena);
    return x.memory;
}

// Addresses

static void *planned(const exec *x, const plan *p, int block) {
    return block < 0 ? NULL : x->slab + x->planned_home + p->block[block].offset;
}

static void *address(const exec *x, const plan *p, instruction in, tensor t) {
    if (!t.id) return NULL;
    const tensor_info *info = graph_info(x->g, t);
    size_t element = dtype_bytes(info->type);
    switch (info->role) {
    case ROLE_CONSTANT:
        return copied(info, x->d->host_memory) ? x->slab + x->home[t.id] : (void *)(uintptr_t)info->data;
    case ROLE_PARAMETER: return x->slab + x->slab_home[SLAB_WEIGHTS] + (size_t)info->offset * element;
    case ROLE_PARAMETER_GRADIENT: return x->slab + x->slab_home[SLAB_GRADIENTS] + (size_t)info->offset * element;
    case ROLE_SLAB: return x->slab + x->slab_home[info->slab];
    case ROLE_STATE: return x->slab + x->home[t.id] + (x->fed[t.id] ? (size_t)x->lane * x->lane_bytes : 0);
    case ROLE_ACTIVATION:
    case ROLE_GRADIENT: return planned(x, p, plan_block_of(p, x->g, in, t));
    }
    CHECK(false, "tensor %d has role %d", t.id, (int)info->role);
}

// The 16-bit copy of a parameter, or of the slab of all.
static void *low_address(const exec *x, tensor t) {
    const tensor_info *info = t.id ? graph_info(x->g, t) : NULL;
    bool all = info && info->role == ROLE_SLAB && info->slab == SLAB_WEIGHTS, one = info && info->low_copy;
    if (!has_low(x) || !(all || one)) return NULL;
    return x->slab + x->low_home + (one ? (size_t)info->offset * dtype_bytes(graph_low_type(x->g)) : 0);
}

// Binds the addresses of one call. Backward sees only what its node needs: the rest may be gone. In a step's first
// micro-batch, parameter gradients that the graph adds into across micro-batches are overwritten instead.
static void bind(const exec *x, const plan *p, exec_part part, instruction in, call *c) {
    const node *n = graph_node(x->g, in.node);
    for (int i = 0; i < n->inputs; i++) {
        if (!c->backward || (n->needs & NEEDS_INPUT(i))) c->in[i].data = address(x, p, in, n->input[i]);
        c->in[i].low = low_address(x, n->input[i]);
        if (!c->backward || n->flow[i] == FLOW_NONE) continue;
        tensor d = graph_gradient(x->g, n->input[i]);
        c->din[i].data = address(x, p, in, d);
        bool parameter = graph_info(x->g, d)->role == ROLE_PARAMETER_GRADIENT;
        c->din[i].add = n->flow[i] == FLOW_ADD || (parameter && part == EXEC_NEXT);
    }
    for (int i = 0; i < n->outputs; i++) {
        if (!c->backward || (n->needs & NEEDS_OUTPUT(i))) c->out[i].data = address(x, p, in, n->output[i]);
        if (c->backward) c->dout[i].data = address(x, p, in, graph_gradient(x->g, n->output[i]));
    }
    c->first = part != EXEC_NEXT;
    c->step_written = (step *)(void *)(x->slab + x->step_home);
    c->step = c->step_written;
    c->queue = x->q;
}

static void bind_micro(exec *x, exec_part part) {
    const plan *p = part == EXEC_EVALUATE ? x->evaluate : x->train;
    x->calls[x->lane][part] = arena_array(&x->arena, (size_t)p->instructions, sizeof(call));
    for (int i = 0; i < p->instructions; i++) {
        instruction in = p->program[i];
        call *c = &x->calls[x->lane][part][x->count[x->lane][part]++];
        plan_call(p, x->g, in, &x->arena, c);
        bind(x, p, part, in, c);
        c->scratch = planned(x, p, p->of_scratch[i]);
        c->reserve = c->keeps ? planned(x, p, p->of_reserve[in.node]) : NULL;
    }
}

static void bind_update(exec *x) {
    x->calls[x->lane][EXEC_UPDATE] = arena_array(&x->arena, (size_t)graph_nodes(x->g), sizeof(call));
    for (int i = 0; i < graph_nodes(x->g); i++) {
        const node *n = graph_node(x->g, i);
        if (n->phase != PHASE_UPDATE) continue;
        call *c = &x->calls[x->lane][EXEC_UPDATE][x->count[x->lane][EXEC_UPDATE]++];
        instruction in = {.node = i};
        plan_call(x->train, x->g, in, &x->arena, c);
        bind(x, x->train, EXEC_UPDATE, in, c);
        c->scratch = planned(x, x->train, x->train->update_scratch);
    }
}

// The calls of FIRST and UPDATE, over and over.
static void repeat_steps(exec *x) {
    int micro = x->count[x->lane][EXEC_FIRST], update = x->count[x->lane][EXEC_UPDATE], each = micro + update;
    call *to = arena_array(&x->arena, (size_t)each * (size_t)x->options.together, sizeof *to);
    for (int i = 0; i < x->options.together; i++) {
        memcpy(to + i * each, x->calls[x->lane][EXEC_FIRST], (size_t)micro * sizeof *to);
        memcpy(to + i * each + micro, x->calls[x->lane][EXEC_UPDATE], (size_t)update * sizeof *to);
    }
    x->calls[x->lane][EXEC_TOGETHER] = to;
    x->count[x->lane][EXEC_TOGETHER] = each * x->options.together;
}

// Constants on the device

static void widen(double *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

static bool copy_constant(exec *x, tensor t, err *e) {
    const tensor_info *info = graph_info(x->g, t);
    size_t bytes = tensor_bytes(info, x->options.batch);
    if (info->type == info->data_type) return x->d->write(x->q, x->slab + x->home[t.id], info->data, bytes, e);
    CHECK(info->type == DTYPE_F64 && info->data_type == DTYPE_F32, "constant %s: no conversion from %s to %s",
        info->name, dtype_name(info->data_type), dtype_name(info->type));
    double *wide = malloc(bytes);
    if (!wide) return err_run(e, "out of memory for %zu bytes of constants", bytes);
    widen(wide, info->data, shape_count(shape_resolve(info->shape, x->options.batch)));
    bool ok = x->d->write(x->q, x->slab + x->home[t.id], wide, bytes, e);
    free(wide);
    return ok;
}

static bool copy_constants(exec *x, err *e) {
    for (int i = 1; i <= graph_tensors(x->g); i++) {
        if (!copied(graph_info(x->g, (tensor){i}), x->d->host_memory)) continue;
        if (!copy_constant(x, (tensor){i}, e)) return false;
    }
    return true;
}

static void bind_part(exec *x, exec_part part) {
    switch (part) {
    case EXEC_UPDATE: bind_update(x); break;
    case EXEC_TOGETHER: repeat_steps(x); break;
    default: bind_micro(x, part); break;
    }
}

// Whether a part reads what is fed, and so is recorded for every lane.
static bool reads_lane(exec_part part) {
    return part == EXEC_FIRST || part == EXEC_NEXT || part == EXEC_EVALUATE;
}

static bool record_lane(exec *x, err *e) {
    for (int part = 0; part < EXEC_PARTS; part++) {
        if (x->options.inference && part != EXEC_EVALUATE) continue;
        if (part == EXEC_TOGETHER && !x->options.together) continue;
        if (x->lane && !reads_lane((exec_part)part)) continue;
        bind_part(x, (exec_part)part);
        recording *r = x->d->record(x->q, x->calls[x->lane][part], x->count[x->lane][part], e);
        if (!r) return false;
        x->recorded[x->lane][part] = r;
    }
    return true;
}

static bool record_all(exec *x, err *e) {
    bool ok = true;
    for (x->lane = 0; ok && x->lane < x->lanes; x->lane++) ok = record_lane(x, e);
    x->lane = 0;
    return ok;
}

// All but the slab.
static exec *exec_laid_out(const device *d, queue *q, const graph *g, const exec_options *o, err *e) {
    exec *x = calloc(1, sizeof *x);
    if (!x) {
        err_run(e, "out of memory for an executor");
        return NULL;
    }
    x->d = d;
    x->q = q;
    x->g = g;
    x->options = *o;
    arena_init(&x->arena);
    lay_out(x, d->kernels(q), d->host_memory);
    return x;
}

exec *exec_new(const device *d, queue *q, const graph *g, const exec_options *o, err *e) {
    exec *x = exec_laid_out(d, q, g, o, e);
    if (!x) return NULL;
    x->slab = d->allocate(q, x->memory.total, e);
    if (x->slab && copy_constants(x, e) && record_all(x, e)) return x;
    exec_free(x);
    return NULL;
}

exec *exec_replace(exec *x, const graph *g, const exec_options *o, err *e) {
    const device *d = x->d;
    queue *q = x->q;
    exec_options same = *o;
    same.room = x->memory.total;
    exec *y = d->sync(q, e) ? exec_laid_out(d, q, g, &same, e) : NULL;
    if (y) {
        CHECK(y->memory.total == same.room, "%zu bytes in a slab of %zu", y->memory.total, same.room);
        y->slab = x->slab;
        x->slab = NULL;
    }
    exec_free(x);
    if (y && d->fill(q, y->slab, 0, y->memory.total, e) && copy_constants(y, e) && record_all(y, e)) return y;
    exec_free(y);
    return NULL;
}

void exec_free(exec *x) {
    if (!x) return;
    for (int i = 0; i < LANES * EXEC_PARTS; i++) {
        recording *r = x->recorded[i / EXEC_PARTS][i % EXEC_PARTS];
        if (r) x->d->forget(x->q, r);
    }
    if (x->slab) x->d->release(x->q, x->slab, x->memory.total);
    arena_done(&x->arena);
    free(x);
}

exec_memory exec_used(const exec *x) {
    return x->memory;
}

const plan *exec_plan(const exec *x, bool training) {
    return training ? x->train : x->evaluate;
}

bool exec_play(exec *x, exec_part part, err *e) {
    recording *r = x->recorded[reads_lane(part) ? x->lane : 0][part];
    CHECK(r, "part %d of an inference graph, or one that was not asked for", (int)part);
    return x->d->play(x->q, r, e);
}

bool exec_feed(exec *x, const void *from, err *e) {
    CHECK(x->options.inputs, "a feed of no inputs");
    x->lane = (x->lane + 1) % x->lanes;
    unsigned char *to = x->slab + x->lane_home + (size_t)x->lane * x->lane_bytes;
    return x->d->feed(x->q, x->lane, to, from, x->options.input_bytes, e);
}

bool exec_fed(exec *x, bool but_last, err *e) {
    for (int lane = 0; lane < x->lanes; lane++) {
        if (but_last && lane == x->lane) continue;
        if (!x->d->fed(x->q, lane, e)) return false;
    }
    return true;
}

// Of a step's forward pass.
static double products(const graph *g, int64_t batch) {
    double sum = 0;
    for (int i = 0; i < graph_nodes(g); i++)
        if (graph_node(g, i)->phase == PHASE_FORWARD) sum += graph_products(g, graph_node(g, i), batch);
    return sum;
}

// 4e10 of them are some six milliseconds of a fast card, and fifty of a slow one. As many steps as leave the fewest
// recordings to start, single steps among them.
int exec_together(const device *d, const graph *g, int64_t batch, int64_t steps) {
    enum { MOST = 64, LEAST = 8 };
    double all = products(g, batch);
    int64_t most = all * MOST < 4e10 ? MOST : (int64_t)(4e10 / all), best = 0, fewest = steps;
    for (int64_t n = 2; n <= most && most >= LEAST; n++) {
        if (steps / n + steps % n >= fewest) continue;
        fewest = steps / n + steps % n;
        best = n;
    }
    return d->host_memory ? 0 : (int)best;
}

bool exec_play_steps(exec *x, int64_t steps, err *e) {
    for (int n = x->options.together; n && steps >= n; steps -= n)
        if (!exec_play(x, EXEC_TOGETHER, e)) return false;
    for (; steps > 0; steps--)
        if (!exec_play(x, EXEC_FIRST, e) || !exec_play(x, EXEC_UPDATE, e)) return false;
    return true;
}

// Moving tensors

static void *lasting_address(const exec *x, tensor t) {
    return address(x, x->evaluate, (instruction){0}, t);
}

static const tensor_info *lasting(const exec *x, tensor t) {
    const tensor_info *info = graph_info(x->g, t);
    CHECK(info->role != ROLE_ACTIVATION && info->role != ROLE_GRADIENT && info->role != ROLE_CONSTANT,
        "tensor %d does not outlive a step", t.id);
    CHECK(info->role != ROLE_STATE || !x->fed[t.id], "tensor %d is fed", t.id);
    return info;
}

// What a parameter's 16-bit copy is after the host has changed it.
static bool write_low(exec *x, tensor t, err *e) {
    void *low = low_address(x, t);
    const tensor_info *info = graph_info(x->g, t);
    size_t count = (size_t)shape_count(shape_resolve(info->shape, x->options.batch));
    return !low || x->d->narrow(x->q, low, graph_low_type(x->g), lasting_address(x, t), count, e);
}

bool exec_write(exec *x, tensor t, const void *from, err *e) {
    const tensor_info *info = lasting(x, t);
    return x->d->write(x->q, lasting_address(x, t), from, tensor_bytes(info, x->options.batch), e) &&
           write_low(x, t, e);
}

bool exec_read(exec *x, tensor t, void *to, err *e) {
    const tensor_info *info = lasting(x, t);
    return x->d->read(x->q, to, lasting_address(x, t), tensor_bytes(info, x->options.batch), e);
}

bool exec_peek(exec *x, tensor t, bool training, void *to, err *e) {
    const plan *p = training ? x->train : x->evaluate;
    void *from = planned(x, p, p->of_tensor[t.id]);
    CHECK(from && graph_info(x->g, t)->kept, "tensor %d is not kept", t.id);
    return x->d->read(x->q, to, from, tensor_bytes(graph_info(x->g, t), x->options.batch), e);
}

bool exec_clear(exec *x, tensor t, err *e) {
    const tensor_info *info = lasting(x, t);
    return x->d->fill(x->q, lasting_address(x, t), 0, tensor_bytes(info, x->options.batch), e) && write_low(x, t, e);
}

bool exec_step_write(exec *x, const step *s, err *e) {
    return x->d->write(x->q, x->slab + x->step_home, s, sizeof *s, e);
}

bool exec_step_read(exec *x, step *s, err *e) {
    return x->d->read(x->q, s, x->slab + x->step_home, sizeof *s, e);
}

// Guards

bool exec_poison(exec *x, int byte, bool training, err *e) {
    const plan *p = training ? x->train : x->evaluate;
    if (!x->d->fill(x->q, x->slab + x->planned_home, GUARD_BYTE, p->peak, e)) return false;
    for (int i = 0; i < p->blocks; i++)
        if (!x->d->fill(x->q, planned(x, p, i), byte, p->block[i].used, e)) return false;
    return true;
}

static bool guard_whole(exec *x, const plan *p, int i, unsigned char *seen, err *e) {
    size_t used = p->block[i].used, guard = p->block[i].bytes - used;
    if (!x->d->read(x->q, seen, (unsigned char *)planned(x, p, i) + used, guard, e)) return false;
    for (size_t k = 0; k < guard; k++)
        if (seen[k] != GUARD_BYTE) return err_run(e, "byte %zu behind block %d was written", k, i);
    return true;
}

bool exec_guards_whole(exec *x, bool training, err *e) {
    const plan *p = training ? x->train : x->evaluate;
    if (!x->options.guard) return true;
    unsigned char *seen = malloc(x->options.guard + PLAN_ALIGN);
    if (!seen) return err_run(e, "out of memory for %zu bytes", x->options.guard);
    bool whole = true;
    for (int i = 0; whole && i < p->blocks; i++) whole = guard_whole(x, p, i, seen, e);
    free(seen);
    return whole;
}

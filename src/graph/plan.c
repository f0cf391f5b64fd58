#include "graph/plan.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

// Placement

typedef struct {
    const plan_block *block;
    int index;
} ranked;

static int by_size(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->block->bytes != y->block->bytes) return x->block->bytes < y->block->bytes ? 1 : -1;
    if (x->block->first != y->block->first) return x->block->first < y->block->first ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

// `placed` lists the blocks placed so far by rising offset. The lowest offset at which `b` meets none of them.
static size_t lowest_gap(const plan_block *block, const int *placed, int count, const plan_block *b) {
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const plan_block *p = &block[placed[i]];
        if (p->last < b->first || b->last < p->first) continue;
        if (p->offset >= at + b->bytes) break;
        if (p->offset + p->bytes > at) at = p->offset + p->bytes;
    }
    return at;
}

static void insert_by_offset(const plan_block *block, int *placed, int count, int index) {
    int i = count;
    while (i > 0 && block[placed[i - 1]].offset > block[index].offset) i--;
    memmove(placed + i + 1, placed + i, (size_t)(count - i) * sizeof *placed);
    placed[i] = index;
}

size_t plan_place(plan_block *block, int count) {
    ranked *order = malloc((size_t)(count + 1) * sizeof *order);
    int *placed = malloc((size_t)(count + 1) * sizeof *placed);
    NEED(order && placed, "out of memory for a plan of %d blocks", count);
    for (int i = 0; i < count; i++) {
        block[i].bytes = plan_aligned(block[i].bytes);
        order[i] = (ranked){&block[i], i};
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    size_t peak = 0;
    for (int i = 0; i < count; i++) {
        plan_block *b = &block[order[i].index];
        b->offset = lowest_gap(block, placed, i, b);
        insert_by_offset(block, placed, i, order[i].index);
        if (b->offset + b->bytes > peak) peak = b->offset + b->bytes;
    }
    free(order);
    free(placed);
    return peak;
}

size_t plan_floor(const plan_block *block, int count) {
    int end = 0;
    for (int i = 0; i < count; i++)
        if (block[i].last + 2 > end) end = block[i].last + 2;
    int64_t *change = calloc((size_t)end + 1, sizeof *change);
    NEED(change, "out of memory for a plan of %d instructions", end);
    for (int i = 0; i < count; i++) {
        change[block[i].first] += (int64_t)plan_aligned(block[i].bytes);
        change[block[i].last + 1] -= (int64_t)plan_aligned(block[i].bytes);
    }
    int64_t live = 0, most = 0;
    for (int i = 0; i < end; i++) {
        live += change[i];
        if (live > most) most = live;
    }
    free(change);
    return (size_t)most;
}

// Shapes of a call

static void operand_of(const graph *g, tensor t, int64_t batch, operand *o) {
    if (!t.id) return;
    const tensor_info *info = graph_info(g, t);
    o->type = info->type;
    o->shape = shape_resolve(info->shape, batch);
    bool all = info->role == ROLE_SLAB && info->slab == SLAB_WEIGHTS;
    o->low_type = all || info->low_copy ? graph_low_type(g) : DTYPE_F32;
}

static bool is_again(const plan *p, const node *n) {
    return n->segment && n->segment <= p->again;
}

// Forward keeps something for backward when it runs the last time.
static bool keeps(const plan *p, const node *n, instruction in) {
    return p->training && n->backward && (in.backward || in.again || !is_again(p, n));
}

void plan_call(const plan *p, const graph *g, instruction in, arena *a, call *c) {
    const node *d = graph_node(g, in.node);
    int64_t batch = p->batch;
    *c = (call){.op = d->op,
        .name = d->name,
        .node = d->number,
        .batch = batch,
        .backward = in.backward,
        .training = p->training,
        .tf32 = graph_tf32(g),
        .products = graph_multiplies_by(g),
        .keeps = keeps(p, d, in),
        .attr = d->attr,
        .inputs = d->inputs,
        .outputs = d->outputs};
    c->in = arena_array(a, (size_t)(2 * d->inputs + 2 * d->outputs), sizeof *c->in);
    c->din = c->in + d->inputs;
    c->out = c->din + d->inputs;
    c->dout = c->out + d->outputs;
    for (int i = 0; i < d->inputs; i++) {
        operand_of(g, d->input[i], batch, &c->in[i]);
        if (d->flow[i] != FLOW_NONE) operand_of(g, graph_gradient(g, d->input[i]), batch, &c->din[i]);
        c->din[i].add = d->flow[i] == FLOW_ADD;
    }
    for (int i = 0; i < d->outputs; i++) {
        operand_of(g, d->output[i], batch, &c->out[i]);
        operand_of(g, graph_gradient(g, d->output[i]), batch, &c->dout[i]);
    }
}

// The instructions and their lives

static void list_add(plan *p, const graph *g, phase ph) {
    for (int i = 0; i < graph_nodes(g); i++)
        if (graph_node(g, i)->phase == ph) p->list[p->instructions++] = (instruction){.node = i};
}

// True if a node of the segment makes the tensor.
static bool is_made_in(const graph *g, tensor t, int segment) {
    const tensor_info *info = t.id ? graph_info(g, t) : NULL;
    return info && info->role == ROLE_ACTIVATION && graph_node(g, info->producer)->segment == segment;
}

static void mark_inputs(const graph *g, const node *n, bool *wanted) {
    for (int i = 0; i < n->inputs; i++)
        if (is_made_in(g, n->input[i], n->segment)) wanted[n->input[i].id] = true;
}

// Marks what a node's backward reads of its own segment.
static void mark_needs(const graph *g, const node *n, bool *wanted) {
    for (int i = 0; i < n->inputs; i++)
        if (n->needs & NEEDS_INPUT(i) && is_made_in(g, n->input[i], n->segment)) wanted[n->input[i].id] = true;
    for (int i = 0; i < n->outputs; i++)
        if (n->needs & NEEDS_OUTPUT(i)) wanted[n->output[i].id] = true;
}

static bool keeps_bytes(const plan *p, const graph *g, const kernel *const *kernels, int node, arena *a) {
    call c;
    plan_call(p, g, (instruction){.node = node, .again = true}, a, &c);
    const kernel *k = kernels[c.op];
    return c.keeps && k->reserve && k->reserve(&c) > 0;
}

// The forward instructions of the segment that ends with node `last`, as far as its backward needs them: those that
// make what is read, and those that keep something.
static void list_recomputed(plan *p, const graph *g, const kernel *const *kernels, int last, arena *a) {
    int segment = graph_node(g, last)->segment, first = last, from = p->instructions;
    bool *wanted = arena_array(a, (size_t)graph_tensors(g) + 1, sizeof *wanted);
    while (first > 0 && graph_node(g, first - 1)->segment == segment) first--;
    for (int i = first; i <= last; i++)
        if (graph_node(g, i)->backward) mark_needs(g, graph_node(g, i), wanted);
    for (int i = last; i >= first; i--) {
        const node *n = graph_node(g, i);
        bool runs = keeps_bytes(p, g, kernels, i, a);
        for (int k = 0; k < n->outputs; k++) runs |= wanted[n->output[k].id];
        if (!runs) continue;
        mark_inputs(g, n, wanted);
        p->list[p->instructions++] = (instruction){.node = i, .again = true};
    }
    for (int i = from, j = p->instructions - 1; i < j; i++, j--) {
        instruction in = p->list[i];
        p->list[i] = p->list[j];
        p->list[j] = in;
    }
}

static void list_write(plan *p, const graph *g, const kernel *const *kernels, arena *a) {
    p->list = arena_array(a, (size_t)graph_nodes(g) * 3, sizeof *p->list);
    list_add(p, g, PHASE_FORWARD);
    int segment = 0;
    for (int i = graph_nodes(g) - 1; p->training && i >= 0; i--) {
        const node *n = graph_node(g, i);
        if (is_again(p, n) && n->segment != segment) list_recomputed(p, g, kernels, i, a);
        segment = n->segment;
        if (n->backward) p->list[p->instructions++] = (instruction){.node = i, .backward = true};
    }
    list_add(p, g, PHASE_AFTER);
}

typedef struct {
    const graph *g;
    plan *p;
    int room;
    arena *a;
} builder;

static int block_add(builder *b, owner_kind kind, int id, size_t bytes, int first) {
    plan *p = b->p;
    CHECK(p->blocks < b->room, "plan of more than %d blocks", b->room);
    p->block[p->blocks] = (plan_block){bytes, first, first, 0, bytes};
    p->owner[p->blocks] = (plan_owner){kind, id};
    return p->blocks++;
}

// Where an instruction finds a tensor's block: in its second life if both belong to a segment that is recomputed
// and the instruction comes after the forward pass.
static int *block_slot(const plan *p, const graph *g, instruction in, tensor t) {
    const node *n = graph_node(g, in.node);
    bool second = (in.again || in.backward) && is_again(p, n) && is_made_in(g, t, n->segment);
    return second ? &p->of_again[t.id] : &p->of_tensor[t.id];
}

int plan_block_of(const plan *p, const graph *g, instruction in, tensor t) {
    return *block_slot(p, g, in, t);
}

static void touch(builder *b, tensor t, int at) {
    if (!t.id) return;
    const tensor_info *info = graph_info(b->g, t);
    if (info->role != ROLE_ACTIVATION && info->role != ROLE_GRADIENT) return;
    int *block = block_slot(b->p, b->g, b->p->list[at], t);
    if (*block < 0) {
        size_t bytes = (size_t)shape_count(shape_resolve(info->shape, b->p->batch)) * dtype_bytes(info->type);
        *block = block_add(b, OWNER_TENSOR, t.id, bytes, at);
    }
    b->p->block[*block].last = info->kept && block == &b->p->of_tensor[t.id] ? b->p->instructions : at;
}

static void touch_forward(builder *b, const node *n, int at) {
    for (int i = 0; i < n->inputs; i++) touch(b, n->input[i], at);
    for (int i = 0; i < n->outputs; i++) touch(b, n->output[i], at);
}

static void touch_backward(builder *b, const node *n, int at) {
    for (int i = 0; i < n->inputs; i++) {
        if (n->needs & NEEDS_INPUT(i)) touch(b, n->input[i], at);
        if (n->flow[i] != FLOW_NONE) touch(b, graph_gradient(b->g, n->input[i]), at);
    }
    for (int i = 0; i < n->outputs; i++) {
        if (n->needs & NEEDS_OUTPUT(i)) touch(b, n->output[i], at);
        touch(b, graph_gradient(b->g, n->output[i]), at);
    }
}

static void live_at(builder *b, const kernel *const *kernels, int at) {
    plan *p = b->p;
    instruction in = p->list[at];
    const node *n = graph_node(b->g, in.node);
    in.backward ? touch_backward(b, n, at) : touch_forward(b, n, at);
    call c;
    plan_call(p, b->g, in, b->a, &c);
    const kernel *k = kernels[n->op];
    size_t scratch = k->scratch ? k->scratch(&c) : 0;
    if (scratch) p->of_scratch[at] = block_add(b, OWNER_SCRATCH, at, scratch, at);
    if (!c.keeps) return;
    if (!in.backward) {
        size_t reserve = k->reserve ? k->reserve(&c) : 0;
        if (reserve) p->of_reserve[in.node] = block_add(b, OWNER_RESERVE, in.node, reserve, at);
    } else if (p->of_reserve[in.node] >= 0) {
        p->block[p->of_reserve[in.node]].last = at;
    }
}

// Update nodes run when no activation is alive, one after the other: they share one block of scratch.
static void update_scratch(builder *b, const kernel *const *kernels) {
    size_t most = 0;
    for (int i = 0; i < graph_nodes(b->g); i++) {
        const node *n = graph_node(b->g, i);
        if (n->phase != PHASE_UPDATE || !kernels[n->op]->scratch) continue;
        call c;
        plan_call(b->p, b->g, (instruction){.node = i}, b->a, &c);
        size_t bytes = kernels[n->op]->scratch(&c);
        if (bytes > most) most = bytes;
    }
    int end = b->p->instructions;
    b->p->update_scratch = most && b->p->training ? block_add(b, OWNER_SCRATCH, end, most, end) : -1;
}

// A guard can only be trusted where nobody else may write: guarded blocks share no memory.
static void add_guards(plan *p, size_t guard) {
    for (int i = 0; i < p->blocks; i++) {
        p->block[i].bytes += guard;
        p->block[i].first = 0;
        p->block[i].last = p->instructions;
    }
}

static int later(const plan *p, int at, int by) {
    return at + by < p->instructions ? at + by : p->instructions;
}

// Places the blocks, each of which stays after its last use, `last`: small ones for `far` instructions, others for
// `near`.
static void place_lingering(plan *p, const int *last, int near, int far, size_t guard) {
    enum { SMALL = 2 << 20 };
    for (int i = 0; i < p->blocks; i++) {
        p->block[i].bytes = p->block[i].used;
        p->block[i].last = later(p, last[i], p->block[i].used < SMALL ? far : near);
    }
    if (guard) add_guards(p, guard);
    p->peak = plan_place(p->block, p->blocks);
}

// Where it costs an eighth, or 4 MB, small blocks stay long enough for a device to join many calls, and large ones long
// enough that what the next layers write does not wait for what is still computed beside them.
static void place_blocks(plan *p, const plan_options *o, arena *a) {
    enum { CHEAP = 4 << 20 };
    int *last = arena_array(a, (size_t)p->blocks, sizeof *last);
    for (int i = 0; i < p->blocks; i++) last[i] = p->block[i].last;
    place_lingering(p, last, o->linger, o->linger, o->guard);
    size_t most = p->peak + p->peak / 8 + CHEAP;
    if (o->linger_small <= o->linger) return;
    place_lingering(p, last, o->linger_long, o->linger_small, o->guard);
    if (p->peak > most) place_lingering(p, last, o->linger, o->linger_small, o->guard);
    if (p->peak > most) place_lingering(p, last, o->linger, o->linger, o->guard);
}

static int *minus_ones(arena *a, int count) {
    int *v = arena_array(a, (size_t)count, sizeof *v);
    for (int i = 0; i < count; i++) v[i] = -1;
    return v;
}

plan *plan_make(const graph *g, const kernel *const *kernels, const plan_options *o, arena *a) {
    CHECK(o->batch > 0, "a plan for %lld rows", (long long)o->batch);
    plan *p = arena_take(a, sizeof *p);
    p->batch = o->batch;
    p->training = o->training;
    p->again = o->training ? o->again : 0;
    if (!o->update_only) list_write(p, g, kernels, a);
    builder b = {g, p, 2 * graph_tensors(g) + graph_nodes(g) + p->instructions + 1, a};
    p->block = arena_array(a, (size_t)b.room, sizeof *p->block);
    p->owner = arena_array(a, (size_t)b.room, sizeof *p->owner);
    p->of_tensor = minus_ones(a, graph_tensors(g) + 1);
    p->of_again = minus_ones(a, graph_tensors(g) + 1);
    p->of_reserve = minus_ones(a, graph_nodes(g));
    p->of_scratch = minus_ones(a, p->instructions);
    for (int i = 0; i < p->instructions; i++) live_at(&b, kernels, i);
    update_scratch(&b, kernels);
    place_blocks(p, o, a);
    p->floor = plan_floor(p->block, p->blocks);
    return p;
}

// Printing

static void block_name(const plan *p, const graph *g, int i, char *text, size_t room) {
    plan_owner w = p->owner[i];
    if (w.kind == OWNER_RESERVE) {
        snprintf(text, room, "%s (kept for backward)", graph_node(g, w.id)->name);
    } else if (w.kind == OWNER_SCRATCH) {
        const char *op = w.id < p->instructions ? graph_node(g, p->list[w.id].node)->name : "update";
        snprintf(text, room, "%s (scratch)", op);
    } else {
        const tensor_info *t = graph_info(g, (tensor){w.id});
        bool gradient = t->role == ROLE_GRADIENT;
        const char *op = t->producer >= 0 ? graph_node(g, t->producer)->name : "activation";
        snprintf(text, room, "%s %d", gradient ? "gradient" : op, w.id);
    }
}

void plan_print(const plan *p, const graph *g, FILE *out) {
    enum { ROWS = 12 };
    ranked *order = malloc((size_t)(p->blocks + 1) * sizeof *order);
    NEED(order, "out of memory for a table of %d blocks", p->blocks);
    for (int i = 0; i < p->blocks; i++) order[i] = (ranked){&p->block[i], i};
    qsort(order, (size_t)p->blocks, sizeof *order, by_size);
    fprintf(out, "%-32s %12s %12s  %s\n", "block", "bytes", "offset", "alive");
    for (int i = 0; i < p->blocks && i < ROWS; i++) {
        const plan_block *b = order[i].block;
        char name[96];
        block_name(p, g, order[i].index, name, sizeof name);
        fprintf(out, "%-32s %12zu %12zu  %d-%d\n", name, b->bytes, b->offset, b->first, b->last);
    }
    if (p->blocks > ROWS) fprintf(out, "... and %d smaller ones\n", p->blocks - ROWS);
    fprintf(out, "%d blocks over %d instructions: %zu bytes, of which at most %zu are alive together\n", p->blocks,
        p->instructions, p->peak, p->floor);
    free(order);
}

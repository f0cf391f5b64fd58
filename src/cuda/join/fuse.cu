#include "cuda/join/fuse.cuh"

#include "cuda/device/room.cuh"
#include "cuda/device/table.cuh"
#include "cuda/join/act.cuh"
#include "cuda/join/gather.cuh"
#include "cuda/join/life.cuh"
#include "cuda/join/residual.cuh"
#include "cuda/join/step_end.cuh"
#include "cuda/product/few.cuh"
#include "cuda/product/weights.cuh"
#include "cuda/rows/pack.cuh"
#include "cuda/rows/rows.cuh"

#include <stdlib.h>
#include <string.h>

enum { RANGES_PER_CALL = 72 };

// Bytes of shared memory of a row kernel's blocks at most: where there are more blocks than multiprocessors, so much
// that two fit a large multiprocessor; else nearly all of one. Cards with less than MUCH have no wide products.
enum { ROOM_SHARED = 92 * 1024, ROOM_ALONE = 180 * 1024, MUCH = 128 * 1024 };

// Memory

static void range_add(group *g, const void *at, size_t bytes, bool written) {
    if (!at || !bytes) return;
    g->ranges[g->range_count++] = range{(const char *)at, (const char *)at + bytes, written};
}

static void operand_add(group *g, const operand *o, bool written) {
    range_add(g, o->data, (size_t)operand_count(o) * dtype_bytes(o->type), written);
    range_add(g, o->low, (size_t)operand_count(o) * dtype_bytes(o->low_type), written);
}

static void operands_add(group *g, const operand *o, int count, bool written) {
    for (int i = 0; i < count; i++) operand_add(g, &o[i], written);
}

static void step_add(group *g, const call *c, bool written) {
    range_add(g, c->step.progress, sizeof(step_progress), written);
    range_add(g, c->step.cursor, sizeof(step_cursor), written);
}

static bool touches_step(const call *c) {
    return op_traits((op)c->op) & (READS_STEP | WRITES_STEP);
}

static bool changes_weights(const call *c) {
    return op_traits((op)c->op) & WRITES_WEIGHTS;
}

// All that a call may touch.
static void call_add(group *g, const call *c) {
    const kernel *k = cuda_table[c->op];
    CHECK(2 * (c->inputs + c->outputs) + 4 <= RANGES_PER_CALL, "%s has too many operands", c->name);
    operands_add(g, c->in, c->inputs, changes_weights(c));
    operands_add(g, c->out, c->outputs, !c->backward);
    if (c->backward) {
        operands_add(g, c->dout, c->outputs, false);
        operands_add(g, c->din, c->inputs, true);
    }
    if (touches_step(c)) step_add(g, c, op_traits((op)c->op) & WRITES_STEP);
    if (c->scratch && k->scratch) range_add(g, c->scratch, k->scratch(c), true);
    if (c->reserve && k->reserve) range_add(g, c->reserve, k->reserve(c), !c->backward);
}

// Weight gradients touch less than their calls do, so that they can run beside what follows.
static void weights_add(group *g, const call *c) {
    operand_add(g, &c->in[0], false);
    if (!weights_dz_bytes(c)) operand_add(g, &c->dout[0], false);
    operand_add(g, &c->din[1], true);
    operand_add(g, &c->din[2], true);
    range_add(g, c->scratch, cuda_table[c->op]->scratch(c), true);
}

// Sums behind a row kernel: its losses, their tallies, and the moving on of the step.
static void sums_add(group *g, const call *c) {
    bool loss = !c->backward && (c->op == OP_cross_entropy || c->op == OP_mse || c->op == OP_mae);
    if (!loss && c->op != OP_tally && c->op != OP_advance) return;
    call_add(g, c);
}

static void packed_add(group *g, const pack_args *p, bool written) {
    for (int i = 0; i < p->count; i++)
        range_add(g, p->to + p->pack[i].offset, rows_pack_room(&p->pack[i], p->low), written);
}

// A packing reads the weights of a row kernel and writes its packs.
static void packs_add(group *g, const pack_args *p) {
    for (int i = 0; i < p->count; i++)
        range_add(g, p->pack[i].weights, (size_t)p->pack[i].K * (size_t)p->pack[i].N * sizeof(float), false);
    for (int i = 0; i < p->count; i++) range_add(g, p->pack[i].bias, (size_t)p->pack[i].N * sizeof(float), false);
    packed_add(g, p, true);
}

static bool find_pack_ranges(group *g) {
    const pack_args *first = ((const pack_list *)g->args)->first;
    size_t most = 0;
    for (const pack_args *p = first; p; p = p->next) most += 3 * (size_t)p->count;
    g->ranges = (range *)malloc(most * sizeof *g->ranges);
    for (const pack_args *p = first; g->ranges && p; p = p->next) packs_add(g, p);
    return g->ranges != NULL;
}

static bool find_ranges(group *g) {
    int calls = g->count + (g->advance != NULL) + (g->packed != NULL) + (g->below != NULL);
    g->ranges = (range *)malloc((size_t)calls * RANGES_PER_CALL * sizeof *g->ranges);
    if (!g->ranges) return false;
    if (g->packed) packed_add(g, g->packed, false);
    if (g->below && g->kind == GROUP_ROWS) operand_add(g, &g->below->out[0], false);
    if (g->kind == GROUP_WEIGHTS) {
        if (g->below) operand_add(g, &g->below->din[2], true);
        for (int i = 0; i < g->weights; i++) weights_add(g, g->weight[i]);
        return true;
    }
    if (g->kind == GROUP_LARGE) {
        g->range_count = large_ranges(g->calls, g->stage, &g->join, g->ranges);
        return true;
    }
    for (int i = 0; i < g->count; i++) g->kind == GROUP_SUMS ? sums_add(g, &g->calls[i]) : call_add(g, &g->calls[i]);
    if (g->advance) call_add(g, g->advance);
    return true;
}

// Grouping

typedef struct {
    queue *q;
    call *calls;
    int count;
    bool *taken; // calls that have joined a group before their turn
    group *groups;
    int made;
    const call *sloped, *ready; // the large layer whose slope another has done; a row kernel
    const call *biased;         // and its bias' gradient
    const call *stack;          // the first of layers whose weight gradients are computed together
    int stacked;                // so many
    large_ready stack_ready;
    bool stack_shared;
    rows_compiler rows;
    pack_list *packs; // of the row kernels since weights were last changed, or NULL
} fuser;

// True if calls may share launches.
static bool joins(const fuser *f) {
    return !f->q->wish.no_fuse;
}

static group *group_add(fuser *f, group_kind kind, int first, int count) {
    group *g = &f->groups[f->made++];
    *g = group{};
    g->kind = kind;
    g->calls = f->calls + first;
    g->count = count;
    return g;
}

static void *copied(const void *from, size_t bytes) {
    void *to = malloc(bytes);
    if (to) memcpy(to, from, bytes);
    return to;
}

// The first call from `at` on that has to do with the step record joins the row kernel if it is `advance`.
static const call *join_advance(fuser *f, int at) {
    while (at < f->count && (f->taken[at] || !touches_step(&f->calls[at]))) at++;
    if (at == f->count || f->calls[at].op != OP_advance || !rows_add(&f->rows, &f->calls[at])) return NULL;
    f->taken[at] = true;
    return &f->calls[at];
}

// The layer with large products at `at`, behind the row kernel, if that does its slope: the row kernel's last result is
// the gradient of the layer's, and nobody else's.
static const call *join_slope(fuser *f, int at) {
    const call *c = &f->calls[at];
    if (at >= f->count || f->taken[at] || !c->backward || !large_takes(c)) return NULL;
    if (!life_over(&c->dout[0], true, c + 1, f->count - at - 1) || !rows_add_slope(&f->rows, c)) return NULL;
    return f->ready = c;
}

static bool is_large(const queue *q) {
    return q->shared_most >= MUCH;
}

static int room_for(const queue *q, int64_t rows) {
    int most = (int)q->shared_most - (is_large(q) ? ROWS_OWN_WIDE : ROWS_OWN);
    int wanted = rows_blocks(rows) > q->multiprocessors ? ROOM_SHARED : ROOM_ALONE;
    return wanted < most ? wanted : most;
}

// The packing of the present row kernel's weights: that of an earlier one with the same weights, in the launch of an
// earlier row kernel's, or in a group of its own, which later row kernels may join.
static const pack_args *fuse_pack(fuser *f, int first, int n, bool *ok) {
    pack_args *p = (pack_args *)malloc(sizeof *p);
    *ok = p && pack_make(f->q, p, &f->rows);
    if (!*ok) {
        free(p);
        return NULL;
    }
    const pack_args *there = f->packs ? pack_find(f->packs, p) : NULL;
    if (there) {
        free(p);
        return there;
    }
    if (!f->packs || !pack_joins(f->packs, &f->rows)) {
        f->packs = (pack_list *)calloc(1, sizeof *f->packs);
        NEED(f->packs, "out of memory for a list of packs");
        group_add(f, GROUP_PACK, first, n)->args = f->packs;
    }
    pack_add(f->packs, p);
    return p;
}

// When all that joins has joined.
static bool finish_packs(fuser *f) {
    bool ok = true;
    for (int i = 0; ok && i < f->made; i++)
        if (f->groups[i].kind == GROUP_PACK)
            ok = find_pack_ranges(&f->groups[i]) && pack_upload(f->q, (pack_list *)f->groups[i].args);
    return ok;
}

// The gradients of the weights of the row kernel of group `rows`; a head has that of the bias below among them.
static bool fuse_weights(fuser *f, const group *rows) {
    group *g = group_add(f, GROUP_WEIGHTS, (int)(rows->calls - f->calls), rows->count);
    g->weights = f->rows.weights;
    memcpy(g->weight, f->rows.weight, sizeof g->weight);
    g->head = f->rows.made.sums != NULL;
    if (g->head && rows->below && rows->below->din[2].data) g->below = rows->below;
    if (g->below) f->biased = g->below;
    return find_ranges(g);
}

// The sums behind the row kernel of group `rows`.
static bool fuse_sums(fuser *f, const group *rows) {
    group *g = group_add(f, GROUP_SUMS, (int)(rows->calls - f->calls), rows->count);
    g->advance = rows->advance;
    g->args = copied(rows->args, sizeof(row_kernel));
    return g->args && find_ranges(g);
}

// True if a call of the list gives a tensor: it is no parameter.
static bool is_given(const fuser *f, const operand *o) {
    for (const call *c = f->calls; c < f->calls + f->count; c++)
        for (int k = 0; !c->backward && k < c->outputs; k++)
            if (c->out[k].data == o->data) return true;
    return false;
}

// Tells the row kernel, of n calls from `first` on, which of their results nobody reads any more. A gradient that
// nobody has written over by the end may be a parameter's, which the end of a step reads, unless that is given by a
// call.
static void find_ends(fuser *f, int first, int n) {
    int end = first + n;
    for (const call *c = f->calls + first; c < f->calls + end; c++) {
        const operand *o = c->backward ? c->din : c->out;
        for (int k = 0; k < (c->backward ? c->inputs : c->outputs); k++) {
            if (!o[k].data) continue;
            bool passing = c->backward && is_given(f, &c->in[k]);
            rows_over(&f->rows, &o[k], life_over(&o[k], passing, f->calls + end, f->count - end));
        }
    }
}

// True for a layer that is a launch of its own whatever its neighbours are.
static bool stands_alone(const call *c) {
    return large_takes(c) || few_stands_alone(c);
}

// A row kernel from call `first` on, the gradients of its weights, and its sums. Returns how many calls it does; 0:
// none.
static int fuse_rows(fuser *f, int first, bool *ok) {
    int64_t rows = rows_of(&f->calls[first]);
    int n = 0;
    if (rows <= 0) return 0;
    rows_card card = {room_for(f->q, rows), f->q->multiprocessors, is_large(f->q)};
    rows_begin(&f->rows, cuda_table, rows, card);
    f->rows.heads = !f->q->wish.no_head;
    while (first + n < f->count && !f->taken[first + n] && !stands_alone(&f->calls[first + n]) &&
           rows_add(&f->rows, &f->calls[first + n]))
        n++;
    if (n < 2) return 0;
    const call *below = join_slope(f, first + n), *advance = f->rows.closed ? NULL : join_advance(f, first + n);
    find_ends(f, first, n);
    rows_end(&f->rows);
    const pack_args *packed = f->rows.packs ? fuse_pack(f, first, n, ok) : NULL;
    if (!*ok) return n;
    group *g = group_add(f, GROUP_ROWS, first, n);
    g->advance = advance;
    g->packed = packed;
    g->below = below;
    g->args = copied(&f->rows.made, sizeof f->rows.made);
    *ok = g->args && rows_upload(f->q, (row_kernel *)g->args) && find_ranges(g);
    if (*ok && f->rows.weights) *ok = fuse_weights(f, g);
    if (*ok && f->rows.tails) *ok = fuse_sums(f, g);
    return n;
}

static int fuse_gather(fuser *f, int first, bool *ok) {
    gather_args args;
    int n = gather_match(f->calls + first, f->count - first, &args);
    if (!n) return 0;
    group *g = group_add(f, GROUP_GATHER, first, n);
    g->args = copied(&args, sizeof args);
    *ok = g->args && find_ranges(g);
    return n;
}

// The layer with large products that begins at `at`, and the dropout that it does too: behind it, or backward before
// it.
static const call *find_large(fuser *f, int at, large_join *d) {
    const call *c = &f->calls[at], *next = c + 1;
    int following = f->count - at - 2;
    bool pair = joins(f) && following >= 0 && !f->taken[at] && !f->taken[at + 1];
    *d = large_join{};
    if (pair && c->op == OP_dropout && c->backward && large_takes(next) && large_joins(next, c, next + 1, following, d))
        return next;
    if (!large_takes(c)) return NULL;
    if (pair && !c->backward) large_joins(c, next, next + 1, following, d);
    return c;
}

// The layer behind it in the list whose slope it does, and whether its own was done so. A small one has no slope left
// then: what it is given as the gradient of its results is that of its sums.
static void find_below(fuser *f, const call *c, large_join *d) {
    static const linear_attr plain = {ACT_NONE};
    int at = (int)(c - f->calls) + 1, following = f->count - at - 1;
    call *next = f->calls + at;
    d->sloped = f->sloped == c;
    if (!joins(f) || following < 0 || f->taken[at] || !large_slopes(c, next, next + 1, following)) return;
    d->below = next;
    d->summed = large_takes(next);
    if (d->summed) {
        f->sloped = next;
    } else {
        next->attr = &plain;
    }
}

// The stack that begins with it, or that it is of.
static void find_stack(fuser *f, const call *c, large_join *d) {
    if (joins(f) && !d->sloped && !d->drop) {
        f->stack = c;
        f->stack_ready = d->ready;
        f->stacked = large_together(c, f->count - (int)(c - f->calls), d->ready, &f->stack_shared);
    }
    d->stack_ready = f->stack_ready;
    d->stacked = f->stacked && c - f->stack < f->stacked;
    d->shared = d->stacked && f->stack_shared;
    d->together = d->stacked && c - f->stack == f->stacked - 1 ? f->stacked : 0;
}

// The last group changes places with the one before it if that is not waited for by anyone and leaves it alone.
static void put_forward(fuser *f) {
    group *last = &f->groups[f->made - 1], *before = last - 1;
    if (f->made < 2 || before->kind != GROUP_LARGE || before->stage != LARGE_TOGETHER || group_conflicts(before, last))
        return;
    group aside = *before;
    *before = *last;
    *last = aside;
}

// The stages of such a layer.
static int fuse_large(fuser *f, int at, bool *ok) {
    large_join d;
    const call *c = find_large(f, at, &d);
    if (!c) return 0;
    find_below(f, c, &d);
    d.ready = large_ready{f->ready == c, f->biased == c};
    find_stack(f, c, &d);
    for (int s = 0; *ok && s < LARGE_STAGES; s++) {
        if (!large_has(c, (large_stage)s, &d)) continue;
        group *g = group_add(f, GROUP_LARGE, (int)(c - f->calls), 1);
        g->stage = (large_stage)s;
        g->join = d;
        *ok = find_ranges(g);
        if (*ok && s == LARGE_INPUT) put_forward(f);
    }
    return d.drop ? 2 : 1;
}

static int fuse_residual(fuser *f, int first, bool *ok) {
    residual_args args;
    int n = residual_match(f->calls + first, f->count - first, &args);
    for (int i = 0; i < n; i++)
        if (f->taken[first + i]) return 0;
    if (!n) return 0;
    group *g = group_add(f, GROUP_RESIDUAL, first, n);
    g->args = copied(&args, sizeof args);
    *ok = g->args && find_ranges(g);
    return n;
}

static int fuse_act(fuser *f, int first, bool *ok) {
    act_args args;
    int most = 0;
    while (first + most < f->count && !f->taken[first + most]) most++;
    int n = act_match(f->calls + first, most, &args);
    if (!n) return 0;
    group *g = group_add(f, GROUP_ACT, first, n);
    g->args = copied(&args, sizeof args);
    *ok = g->args && find_ranges(g);
    return n;
}

static int fuse_step_end(fuser *f, int first, bool *ok) {
    step_end_args args;
    int n = step_end_match(f->calls + first, f->count - first, &args);
    if (!n) return 0;
    group *g = group_add(f, GROUP_STEP_END, first, n);
    g->args = copied(&args, sizeof args);
    *ok = g->args && find_ranges(g);
    return n;
}

static bool fuse_all(fuser *f) {
    bool ok = true;
    for (int i = 0; ok && i < f->count;) {
        int n = fuse_large(f, i, &ok);
        if (joins(f) && !n) n = fuse_gather(f, i, &ok);
        if (joins(f) && !n) n = fuse_rows(f, i, &ok);
        if (joins(f) && !n) n = fuse_residual(f, i, &ok);
        if (joins(f) && !n) n = fuse_act(f, i, &ok);
        if (joins(f) && !n) n = fuse_step_end(f, i, &ok);
        if (!n && !f->taken[i]) ok = find_ranges(group_add(f, GROUP_CALL, i, 1));
        for (int end = i + (n ? n : 1); i < end; i++)
            if (changes_weights(&f->calls[i])) f->packs = NULL;
    }
    return ok && finish_packs(f);
}

// A call is in at most four groups.
group *fuse_calls(queue *q, call *calls, int count, int *groups) {
    fuser *f = (fuser *)calloc(1, sizeof *f);
    if (!f) return NULL;
    f->q = q;
    f->calls = calls;
    f->count = count;
    f->taken = (bool *)calloc((size_t)count + 1, sizeof *f->taken);
    f->groups = (group *)calloc((size_t)count * 4 + 1, sizeof *f->groups);
    bool ok = f->taken && f->groups && fuse_all(f);
    group *made = f->groups;
    *groups = f->made;
    free(f->taken);
    free(f);
    if (ok) return made;
    fuse_free(made, *groups);
    return NULL;
}

void fuse_free(group *g, int groups) {
    for (int i = 0; g && i < groups; i++) {
        if (g[i].kind == GROUP_PACK && g[i].args) pack_done((pack_list *)g[i].args);
        free(g[i].args);
        free(g[i].ranges);
    }
    free(g);
}

bool group_conflicts(const group *a, const group *b) {
    for (int i = 0; i < a->range_count; i++)
        for (int j = 0; j < b->range_count; j++) {
            const range *x = &a->ranges[i], *y = &b->ranges[j];
            if ((x->written || y->written) && x->begin < y->end && y->begin < x->end) return true;
        }
    return false;
}

bool group_is_aside(const group *g) {
    if (g->kind == GROUP_WEIGHTS || g->kind == GROUP_SUMS) return true;
    return g->kind == GROUP_LARGE && large_is_aside(g->calls, g->stage, &g->join);
}

void group_launch(const group *g) {
    const call *c = g->calls;
    switch (g->kind) {
    case GROUP_CALL: c->backward ? cuda_table[c->op]->backward(c) : cuda_table[c->op]->forward(c); break;
    case GROUP_GATHER: gather_launch(c, (const gather_args *)g->args); break;
    case GROUP_PACK: pack_launch(c, (const pack_list *)g->args); break;
    case GROUP_ROWS: rows_launch(c, (const row_kernel *)g->args); break;
    case GROUP_SUMS: rows_launch_sums(c, (const row_kernel *)g->args); break;
    case GROUP_WEIGHTS:
        g->head ? rows_launch_head_sums(g->weight[0], g->below) : weights_launch(g->weight, g->weights);
        break;
    case GROUP_LARGE: large_launch(c, g->stage, &g->join); break;
    case GROUP_RESIDUAL: residual_launch(c, (const residual_args *)g->args); break;
    case GROUP_ACT: act_launch(c, (const act_args *)g->args); break;
    case GROUP_STEP_END: step_end_launch(c, (const step_end_args *)g->args); break;
    }
}

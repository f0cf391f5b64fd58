// Plans: blocks alive together never overlap, whatever the blocks and whatever the graph; what is predicted is what is
// allocated; sharing memory changes no result.
#include "graph/plan.h"

#include "cpu/cpu.h"
#include "graph/dtype.h"
#include "graph/grad.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

// Blocks

static bool meet(const plan_block *a, const plan_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

static void check_placed(const plan_block *block, int count, size_t peak) {
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        const plan_block *a = &block[i];
        assert_int_equal(a->offset % PLAN_ALIGN, 0);
        assert_int_equal(a->bytes % PLAN_ALIGN, 0);
        if (a->offset + a->bytes > most) most = a->offset + a->bytes;
        for (int k = 0; k < i; k++) {
            const plan_block *b = &block[k];
            bool apart = a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes;
            if (!apart && meet(a, b)) fail_msg("blocks %d and %d of %d lie over each other", i, k, count);
        }
    }
    assert_int_equal(peak, most);
    assert_true(plan_floor(block, count) <= peak);
}

// Sizes of several kinds: any, few different ones, powers of two, or very large beside very small.
static size_t random_size(dice *d, uint64_t kind) {
    switch (kind) {
    case 0: return dice_below(d, 5000);
    case 1: return 64 * dice_below(d, 4);
    case 2: return (size_t)1 << dice_below(d, 20);
    default: return dice_below(d, 3) ? dice_below(d, 100) : (size_t)1 << 40;
    }
}

static int random_blocks(dice *d, plan_block *block, int most) {
    int count = (int)dice_below(d, (uint64_t)most + 1), end = 1 + (int)dice_below(d, 80);
    uint64_t kind = dice_below(d, 4), length = 1 + dice_below(d, (uint64_t)end);
    for (int i = 0; i < count; i++) {
        int first = (int)dice_below(d, (uint64_t)end), last = first + (int)dice_below(d, length);
        size_t bytes = random_size(d, kind);
        block[i] = (plan_block){.bytes = bytes, .first = first, .last = last, .used = bytes};
    }
    return count;
}

static void random_blocks_never_overlap(void **state) {
    (void)state;
    enum { MOST = 120 };
    plan_block block[MOST], again[MOST];
    dice d = {.seed = 1};
    int sets = support_sanitized() ? 1000 : 5000;
    for (int set = 0; set < sets; set++) {
        int count = random_blocks(&d, block, MOST);
        memcpy(again, block, sizeof block);
        size_t peak = plan_place(block, count);
        check_placed(block, count, peak);
        assert_int_equal(plan_place(again, count), peak);
        for (int i = 0; i < count; i++) assert_int_equal(block[i].offset, again[i].offset);
    }
}

static void few_blocks_are_placed_exactly(void **state) {
    (void)state;
    assert_int_equal(plan_place(NULL, 0), 0);
    assert_int_equal(plan_floor(NULL, 0), 0);
    // Two large ones one after the other share their memory; the small one that outlives both lies beside them.
    plan_block b[] = {{.bytes = 1000, .first = 0, .last = 1}, {.bytes = 900, .first = 2, .last = 3},
        {.bytes = 1, .first = 1, .last = 2}};
    assert_int_equal(plan_place(b, 3), 1024 + 64);
    assert_int_equal(plan_floor(b, 3), 1024 + 64);
    assert_int_equal(b[0].offset, 0);
    assert_int_equal(b[1].offset, 0);
    assert_int_equal(b[2].offset, 1024);
    // Lives that touch in one instruction do meet.
    plan_block touching[] = {{.bytes = 64, .first = 0, .last = 1}, {.bytes = 64, .first = 1, .last = 1}};
    assert_int_equal(plan_place(touching, 2), 128);
}

// Random graphs

enum { WIDTHS = 4, TENSORS_MOST = 96, ROWS_MOST = 9, COLUMNS_MOST = 512 };
static const int64_t widths[WIDTHS] = {1, 5, 8, 33};
static float input[ROWS_MOST * 33];
static int32_t label[ROWS_MOST];
static float weight[ROWS_MOST];
static const float class_weight[3] = {1, 0.5f, 2};

typedef struct {
    graph *g;
    dice d;
    tensor made[TENSORS_MOST];
    bool used[TENSORS_MOST];
    int count;
    tensor seed;
    tensor given[4]; // the states that step_of fills
} maker;

static tensor pick(maker *m) {
    int i = (int)dice_below(&m->d, (uint64_t)m->count);
    m->used[i] = true;
    return m->made[i];
}

static int64_t width_of(const maker *m, tensor t) {
    return shape_last(graph_info(m->g, t)->shape);
}

static tensor parameter(maker *m, shape s) {
    char name[32];
    snprintf(name, sizeof name, "p%d", graph_parameters(m->g));
    return graph_parameter(m->g, name, s, (init){INIT_UNIFORM, 0.5f});
}

static tensor add_linear(maker *m, tensor x, int64_t width) {
    tensor w = parameter(m, shape2(width, width_of(m, x)));
    tensor b = dice_below(&m->d, 2) ? parameter(m, shape1(width)) : TENSOR_NONE;
    return op_linear(m->g, x, w, b, (activation)dice_below(&m->d, 5));
}

// x and another of its width, or x alone, or x twice.
static tensor add_axpby(maker *m, tensor x) {
    tensor y = TENSOR_NONE;
    for (int i = 0; i < 4 && !y.id; i++) {
        int at = (int)dice_below(&m->d, (uint64_t)m->count);
        if (width_of(m, m->made[at]) != width_of(m, x)) continue;
        y = m->made[at];
        m->used[at] = true;
    }
    return op_axpby(m->g, x, y, dice_unit(&m->d), dice_unit(&m->d));
}

// Up to three side by side, the same one perhaps twice.
static tensor add_concat(maker *m, tensor x) {
    tensor parts[3] = {x};
    int64_t columns = width_of(m, x);
    int count = 1, wanted = 1 + (int)dice_below(&m->d, 3);
    while (count < wanted) {
        tensor t = pick(m);
        columns += width_of(m, t);
        parts[count++] = columns <= COLUMNS_MOST ? t : op_slice(m->g, t, 0, 1);
    }
    return op_concat(m->g, parts, count);
}

static tensor add_any(maker *m) {
    tensor x = pick(m);
    int64_t w = width_of(m, x);
    switch (dice_below(&m->d, 6)) {
    case 0: return add_linear(m, x, widths[dice_below(&m->d, WIDTHS)]);
    case 1: return add_axpby(m, x);
    case 2: return add_concat(m, x);
    case 3: return op_slice(m->g, x, w / 3, w - w / 4);
    case 4: return op_dropout(m->g, x, 0.25f);
    default: return op_layernorm(m->g, x, parameter(m, shape1(w)), parameter(m, shape1(w)), 1e-5f);
    }
}

// Everything that nobody has used yet goes side by side, so that every parameter reaches the loss.
static tensor join(maker *m) {
    tensor parts[INPUTS_MOST] = {m->made[m->count - 1]};
    int count = 0;
    for (int i = 0; i < m->count; i++) {
        if (m->used[i]) continue;
        parts[count++] = m->made[i];
        if (count == INPUTS_MOST) {
            parts[0] = op_concat(m->g, parts, count);
            count = 1;
        }
    }
    return count > 1 ? op_concat(m->g, parts, count) : parts[0];
}

static maker random_graph(uint64_t seed) {
    maker m = {.g = graph_new(), .d = {.seed = seed}};
    int nodes = 1 + (int)dice_below(&m.d, 60);
    m.made[m.count++] = m.given[0] = graph_state(m.g, "x", DTYPE_F32, shape2(BATCH, 33));
    m.made[m.count++] = m.given[1] = graph_state(m.g, "y", DTYPE_F32, shape2(BATCH, 5));
    m.given[2] = graph_state(m.g, "label", DTYPE_I32, shape1(BATCH));
    m.given[3] = graph_state(m.g, "weight", DTYPE_F32, shape1(BATCH));
    for (int i = 0; i < nodes; i++) {
        if (dice_below(&m.d, 8) == 0) graph_segment_begin(m.g);
        if (dice_below(&m.d, 16) == 0) graph_segment_end(m.g);
        m.made[m.count] = add_any(&m);
        m.count++;
    }
    graph_segment_end(m.g);
    tensor logits = add_linear(&m, join(&m), 3);
    tensor balance = graph_constant(m.g, "class_weight", DTYPE_F32, shape1(3), class_weight);
    tensor loss = op_cross_entropy(m.g, logits, m.given[2], m.given[3], balance, 0.1f);
    tensor totals = op_tally(m.g, loss);
    if (dice_below(&m.d, 2)) graph_keep(m.g, logits);
    op_advance(m.g, PHASE_AFTER);
    dtype_assign(m.g, PRECISION_FP32);
    m.seed = grad_build(m.g, loss);
    op_adamw(m.g, op_clip(m.g, totals, m.seed, 1, false),
        (adamw_settings){.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .weight_decay = 0.01f});
    op_advance(m.g, PHASE_UPDATE);
    return m;
}

static void fill_inputs(void) {
    dice d = {.seed = 3};
    for (size_t i = 0; i < sizeof input / sizeof *input; i++) input[i] = dice_unit(&d);
    for (int i = 0; i < ROWS_MOST; i++) {
        label[i] = (int32_t)dice_below(&d, 3);
        weight[i] = i == 4 ? 0 : 1;
    }
}

// A tensor that an instruction touches has a block of its size, alive then.
static void check_alive(const plan *p, const graph *g, tensor t, int at) {
    if (!t.id) return;
    const tensor_info *info = graph_info(g, t);
    if (info->role != ROLE_ACTIVATION && info->role != ROLE_GRADIENT) return;
    int block = plan_block_of(p, g, p->list[at], t);
    assert_true(block >= 0 && block < p->blocks);
    const plan_block *b = &p->block[block];
    assert_true(b->first <= at && at <= b->last);
    assert_int_equal(b->used, (size_t)shape_count(shape_resolve(info->shape, p->batch)) * dtype_bytes(info->type));
    assert_true(b->bytes >= b->used);
    if (info->kept && block == p->of_tensor[t.id]) assert_int_equal(b->last, p->instructions);
}

static void check_forward(const plan *p, const graph *g, const node *n, int at) {
    for (int i = 0; i < n->inputs; i++) check_alive(p, g, n->input[i], at);
    for (int i = 0; i < n->outputs; i++) check_alive(p, g, n->output[i], at);
}

static void check_backward(const plan *p, const graph *g, const node *n, int at) {
    for (int i = 0; i < n->inputs; i++) {
        if (n->needs & NEEDS_INPUT(i)) check_alive(p, g, n->input[i], at);
        if (n->flow[i] != FLOW_NONE) check_alive(p, g, graph_gradient(g, n->input[i]), at);
    }
    for (int i = 0; i < n->outputs; i++) {
        if (n->needs & NEEDS_OUTPUT(i)) check_alive(p, g, n->output[i], at);
        check_alive(p, g, graph_gradient(g, n->output[i]), at);
    }
}

// Scratch lives for its instruction; what is reserved lives from a node's forward to its backward.
static void check_own(const plan *p, const graph *g, const kernel *const *kernels, int at, arena *a) {
    instruction in = p->list[at];
    call c;
    plan_call(p, g, in, a, &c);
    const kernel *k = kernels[graph_node(g, in.node)->op];
    size_t scratch = k->scratch ? k->scratch(&c) : 0, reserve = c.keeps && k->reserve ? k->reserve(&c) : 0;
    int s = p->of_scratch[at], r = c.keeps ? p->of_reserve[in.node] : -1;
    assert_int_equal(s >= 0, scratch > 0);
    if (s >= 0) assert_true(p->block[s].used == scratch && p->block[s].first == at && p->block[s].last == at);
    assert_int_equal(r >= 0, reserve > 0);
    if (r >= 0) assert_true(p->block[r].used == reserve && p->block[r].first <= at && at <= p->block[r].last);
}

static void check_plan(const graph *g, const kernel *const *kernels, const plan_options *o) {
    arena a;
    arena_init(&a);
    const plan *p = plan_make(g, kernels, o, &a), *same = plan_make(g, kernels, o, &a);
    check_placed(p->block, p->blocks, p->peak);
    assert_int_equal(p->floor, plan_floor(p->block, p->blocks));
    for (int i = 0; i < p->instructions; i++) {
        const node *n = graph_node(g, p->list[i].node);
        p->list[i].backward ? check_backward(p, g, n, i) : check_forward(p, g, n, i);
        check_own(p, g, kernels, i, &a);
        assert_true(p->training || !p->list[i].backward);
    }
    assert_int_equal(same->blocks, p->blocks);
    assert_int_equal(same->peak, p->peak);
    assert_int_equal(same->instructions, p->instructions);
    assert_memory_equal(same->list, p->list, (size_t)p->instructions * sizeof *p->list);
    assert_memory_equal(same->block, p->block, (size_t)p->blocks * sizeof *p->block);
    assert_memory_equal(same->owner, p->owner, (size_t)p->blocks * sizeof *p->owner);
    arena_done(&a);
}

static void random_graphs_never_overlap(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    int graphs = support_sanitized() ? 60 : 300;
    for (int i = 0; i < graphs; i++) {
        maker m = random_graph(1000 + (uint64_t)i);
        int64_t batch = (int64_t)1 << dice_below(&m.d, 14);
        check_plan(m.g, cpu_device.kernels(q), &(plan_options){.batch = batch, .training = true});
        check_plan(m.g, cpu_device.kernels(q), &(plan_options){.batch = batch + 1, .training = false});
        for (int again = 1; again <= graph_segments(m.g); again++)
            check_plan(m.g, cpu_device.kernels(q), &(plan_options){.batch = batch, .training = true, .again = again});
        graph_free(m.g);
    }
    cpu_device.close(q);
}

// Allocated memory

static size_t allocated;
static int allocations;

static void *count_allocation(queue *q, size_t bytes, err *e) {
    allocated += bytes;
    allocations++;
    return cpu_device.allocate(q, bytes, e);
}

// The CPU, counting; with host_memory false, constants are copied as on a card.
static device counting(bool host_memory) {
    device d = cpu_device;
    d.allocate = count_allocation;
    d.host_memory = host_memory;
    return d;
}

static void check_allocated(const graph *g, queue *q, bool host_memory, const solo_options *o) {
    err e;
    device d = counting(host_memory);
    size_t bytes = solo_measure(&d, q, g, o);
    allocated = 0;
    allocations = 0;
    solo *x = solo_new(&d, q, g, o, &e);
    support_ok(x != NULL, &e);
    assert_int_equal(allocations, 1);
    assert_int_equal(allocated, bytes);
    assert_int_equal(solo_bytes(x), bytes);
    solo_free(x);
}

// The bytes of a space are those of what lies in it, by kind.
static void check_kinds(const graph *g, queue *q, bool host_memory, const solo_options *o) {
    device d = counting(host_memory);
    program_options p = {.graph = g, .rows = o->rows, .passes = PASS_BIT(PASS_EVALUATE), .guard = o->guard};
    program *evaluate = program_new(&d, q, &p), *train = NULL;
    p.passes = PASSES_OF_TRAINING;
    if (!o->inference) train = program_new(&d, q, &p);
    store *s = store_new(host_memory);
    store_add(s, g, o->inference ? STORE_FOR_INFERENCE : STORE_FOR_TRAINING);
    size_t kinds = 0, slab = plan_aligned((size_t)graph_slab_elements(g) * sizeof(float));
    for (int k = 0; k < STORE_KINDS; k++) kinds += store_bytes_of(s, (store_kind)k);
    assert_int_equal(kinds, store_bytes(s));
    assert_int_equal(store_bytes_of(s, STORE_WEIGHTS), slab);
    assert_int_equal(store_bytes_of(s, STORE_GRADIENTS), o->inference ? 0 : slab);
    assert_int_equal(store_bytes_of(s, STORE_MOMENTS), o->inference ? 0 : 2 * slab);
    assert_int_equal(store_bytes_of(s, STORE_CONSTANTS) > 0, !host_memory);
    size_t transient = program_transient(evaluate), own = space_aligned(program_own(evaluate));
    if (train && program_transient(train) > transient) transient = program_transient(train);
    if (train) own += space_aligned(program_own(train));
    assert_true(program_plan(evaluate)->floor <= program_transient(evaluate));
    assert_true(!train || program_plan(train)->floor <= program_transient(train));
    assert_int_equal(solo_measure(&d, q, g, o), space_aligned(kinds) + space_aligned(transient) + own);
    store_free(s);
    program_free(train);
    program_free(evaluate);
}

static void prediction_is_what_is_allocated(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    for (uint64_t i = 0; i < 40; i++) {
        maker m = random_graph(5000 + i);
        solo_options o = {.rows = 1 + (int64_t)(i % ROWS_MOST), .inference = i % 5 == 0, .guard = i % 3 ? 0 : 64};
        for (int host_memory = 0; host_memory < 2; host_memory++) {
            check_allocated(m.g, q, host_memory, &o);
            check_kinds(m.g, q, host_memory, &o);
        }
        graph_free(m.g);
    }
    cpu_device.close(q);
}

// A step's results, with memory shared or not.
static float *step_of(const maker *m, queue *q, size_t guard, int again) {
    err e;
    static const float one[2] = {1, 0};
    size_t n = (size_t)graph_slab_elements(m->g);
    solo *x =
        solo_new(&cpu_device, q, m->g, &(solo_options){.rows = ROWS_MOST, .guard = guard, .recompute = again}, &e);
    support_ok(x != NULL, &e);
    float *w = calloc(2 * n, sizeof *w);
    assert_non_null(w);
    graph_initial(m->g, 7, w);
    solo_step s = {.seed = 3, .update = 1, .lr = 0.01f};
    tensor weights = graph_slab(m->g, SLAB_WEIGHTS), gradients = graph_slab(m->g, SLAB_GRADIENTS);
    support_ok(solo_write(x, weights, w, &e) && solo_write(x, m->seed, one, &e) && solo_step_write(x, &s, &e), &e);
    const void *values[] = {input, input, label, weight};
    for (int k = 0; k < 4; k++) support_ok(solo_write(x, m->given[k], values[k], &e), &e);
    for (int part = PASS_FIRST; part <= PASS_NEXT; part++) {
        support_ok(solo_poison(x, 0xFF, true, &e), &e);
        support_ok(solo_play(x, (pass)part, &e) && solo_guards_whole(x, true, &e), &e);
    }
    support_ok(solo_play(x, PASS_UPDATE, &e), &e);
    support_ok(solo_read(x, weights, w, &e) && solo_read(x, gradients, w + n, &e), &e);
    solo_free(x);
    return w;
}

static void sharing_memory_changes_nothing(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    for (uint64_t i = 0; i < (support_sanitized() ? 20 : 100); i++) {
        maker m = random_graph(9000 + i);
        float *apart = step_of(&m, q, 64, 0), *shared = step_of(&m, q, 0, 0);
        int64_t n = 2 * graph_slab_elements(m.g);
        for (int64_t k = 0; k < n; k++) assert_true(isfinite(apart[k]));
        assert_memory_equal(apart, shared, (size_t)n * sizeof *apart);
        free(apart);
        free(shared);
        graph_free(m.g);
    }
    cpu_device.close(q);
}

// Segments that are recomputed give the bits that were computed first.
static void computing_again_changes_nothing(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    for (uint64_t i = 0; i < (support_sanitized() ? 10 : 60); i++) {
        maker m = random_graph(12000 + i);
        float *kept = step_of(&m, q, 0, 0);
        size_t bytes = 2 * (size_t)graph_slab_elements(m.g) * sizeof *kept;
        for (int again = 1; again <= graph_segments(m.g); again++) {
            float *made = step_of(&m, q, again % 2 ? 64 : 0, again);
            assert_memory_equal(kept, made, bytes);
            free(made);
        }
        free(kept);
        graph_free(m.g);
    }
    cpu_device.close(q);
}

typedef struct {
    size_t bytes, floor;
} activations;

// Activations of a training program, which is described and allocates nothing.
static activations activations_of(const rig *r, int64_t rows, int again) {
    program_options o = {.graph = r->job.g, .rows = rows, .passes = PASSES_OF_TRAINING, .recompute = again};
    program *p = program_new(&cpu_device, r->queue, &o);
    activations m = {program_transient(p), program_plan(p)->floor};
    program_free(p);
    return m;
}

// The encoder's layers but the last leave only their input behind.
static void computing_again_saves_memory(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &cpu_device, 1,
        "data.windows.fast=50 model.kind=transformer model.hidden.fast=64 model.heads=4 model.layers=12");
    int segments = graph_segments(r.job.g);
    assert_true(segments >= 12);
    size_t before = SIZE_MAX, all = 0;
    for (int again = 0; again < segments; again++) {
        activations m = activations_of(&r, 256, again);
        assert_true(m.bytes <= before + before / 20);
        before = m.bytes;
        if (again == 0) all = m.bytes;
    }
    print_message("%d segments: %.1f MB of activations, %.1f with all but one recomputed\n", segments,
        (double)all / 1e6, (double)before / 1e6);
    assert_true(before * 4 <= all);
    rig_close(&r);
}

// The reference model

static void reference_model_wastes_little(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &cpu_device, 1, "data.windows.fast=50 data.windows.slow=20 model.dropout=0.3");
    assert_int_equal(graph_parameter_values(r.job.g), 26403);
    const kernel *const *kernels = cpu_device.kernels(r.queue);
    activations m = activations_of(&r, 3072, 0);
    print_message("batch 3072: %zu bytes of activations, %zu alive together\n", m.bytes, m.floor);
    assert_true((double)m.bytes <= 1.1 * (double)m.floor);
    check_plan(r.job.g, kernels, &(plan_options){.batch = 3072, .training = true});
    check_plan(r.job.g, kernels, &(plan_options){.batch = 3072, .training = false});
    // Far more than any machine has: measured, not allocated.
    activations huge = activations_of(&r, 10000000, 0);
    double ratio = (double)huge.bytes / (double)m.bytes;
    assert_true(fabs(ratio / (10000000.0 / 3072) - 1) < 0.01);
    rig_close(&r);
}

// Nodes of the update run one after the other, and share as much scratch as the one that needs most.
static size_t much_scratch(const call *c) {
    (void)c;
    return 9000;
}

static size_t little_scratch(const call *c) {
    (void)c;
    return 100;
}

static void updates_share_the_largest_scratch(void **state) {
    (void)state;
    static const kernel much = {.scratch = much_scratch}, little = {.scratch = little_scratch};
    for (int first = 0; first < 2; first++) {
        rig r;
        arena a;
        const kernel *all[OP_COUNT];
        arena_init(&a);
        rig_open(&r, &cpu_device, 1, "model.kind=mlp model.widths=16");
        memcpy(all, cpu_device.kernels(r.queue), sizeof all);
        all[OP_clip] = first ? &much : &little;
        all[OP_adamw] = first ? &little : &much;
        const plan *p = plan_make(r.job.g, all, &(plan_options){.batch = 8, .training = true}, &a);
        assert_int_equal(p->block[p->update_scratch].used, 9000);
        arena_done(&a);
        rig_close(&r);
    }
}

// Per block: four layers and a basis of both outputs, of which one is taken from the input and one added to the
// forecast.
static graph *nbeats(int blocks, int64_t width, int64_t lookback, int64_t horizon) {
    maker m = {.g = graph_new()};
    graph *g = m.g;
    tensor x = graph_state(g, "x", DTYPE_F32, shape2(BATCH, lookback)), forecast = TENSOR_NONE;
    for (int b = 0; b < blocks; b++) {
        tensor h = x;
        for (int i = 0; i < 4; i++)
            h = op_linear(g, h, parameter(&m, shape2(width, width_of(&m, h))), parameter(&m, shape1(width)), ACT_RELU);
        h = op_linear(g, h, parameter(&m, shape2(lookback + horizon, width)), TENSOR_NONE, ACT_NONE);
        tensor ahead = op_slice(g, h, lookback, lookback + horizon);
        if (b < blocks - 1) x = op_axpby(g, x, op_slice(g, h, 0, lookback), 1, -1);
        forecast = forecast.id ? op_axpby(g, forecast, ahead, 1, 1) : ahead;
    }
    tensor target = graph_state(g, "target", DTYPE_F32, shape2(BATCH, horizon));
    tensor loss = op_mae(g, forecast, target, graph_state(g, "weight", DTYPE_F32, shape1(BATCH)));
    dtype_assign(g, PRECISION_FP32);
    grad_build(g, loss);
    return g;
}

// Time of this thread alone, whatever else the machine does.
static double worked_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void large_graphs_are_planned_quickly(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    graph *g = nbeats(200, 512, 60, 12);
    plan_options o = {.batch = 1024, .training = true};
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        arena a;
        arena_init(&a);
        double began = worked_seconds();
        const plan *p = plan_make(g, cpu_device.kernels(q), &o, &a);
        double took = worked_seconds() - began;
        best = took < best ? took : best;
        if (i == 0) print_message("%d blocks, %zu bytes, %zu alive\n", p->blocks, p->peak, p->floor);
        if (i == 0) check_placed(p->block, p->blocks, p->peak);
        arena_done(&a);
    }
    print_message("200 blocks of N-BEATS planned in %.1f ms\n", best * 1e3);
    if (!support_sanitized()) assert_true(best < 0.05);
    graph_free(g);
    cpu_device.close(q);
}

static void prints_a_table(void **state) {
    (void)state;
    rig r;
    rig_open(&r, &cpu_device, 1, "");
    arena a;
    arena_init(&a);
    plan_options o = {.batch = 64, .training = true};
    const plan *p = plan_make(r.job.g, cpu_device.kernels(r.queue), &o, &a);
    char *text = NULL, want[160];
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    plan_print(p, r.job.g, f);
    assert_int_equal(fclose(f), 0);
    int lines = 0;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    assert_int_equal(lines, 1 + 12 + 1 + 1);
    assert_int_equal(strncmp(text, "block ", 6), 0);
    assert_non_null(strstr(text, "lstm (kept for backward)"));
    snprintf(want, sizeof want, "%d blocks over %d instructions: %zu bytes, of which at most %zu are alive together\n",
        p->blocks, p->instructions, p->peak, p->floor);
    assert_string_equal(text + bytes - strlen(want), want);
    free(text);
    arena_done(&a);
    rig_close(&r);
}

int main(void) {
    fill_inputs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blocks_never_overlap),
        cmocka_unit_test(few_blocks_are_placed_exactly),
        cmocka_unit_test(random_graphs_never_overlap),
        cmocka_unit_test(prediction_is_what_is_allocated),
        cmocka_unit_test(sharing_memory_changes_nothing),
        cmocka_unit_test(computing_again_changes_nothing),
        cmocka_unit_test(computing_again_saves_memory),
        cmocka_unit_test(reference_model_wastes_little),
        cmocka_unit_test(updates_share_the_largest_scratch),
        cmocka_unit_test(large_graphs_are_planned_quickly),
        cmocka_unit_test(prints_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

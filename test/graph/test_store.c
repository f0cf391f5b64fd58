// Stores: parameters that graphs of different layouts share by name, the order in which a store lies, 16-bit copies
// that follow what is written, copies between stores by name, and constants that are copied only where they have to be.
#include "graph/store.h"

#include "base/half.h"
#include "cpu/cpu.h"
#include "graph/grad.h"
#include "graph/plan.h"
#include "ops/ops.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The CPU as a card: memory of its own, and narrowing to halves.

static int writes, allocations;

static bool card_write(queue *q, void *to, const void *from, size_t bytes, err *e) {
    writes++;
    return cpu_device.write(q, to, from, bytes, e);
}

static void *card_allocate(queue *q, size_t bytes, err *e) {
    allocations++;
    return cpu_device.allocate(q, bytes, e);
}

static bool card_narrow(queue *q, void *to, dtype type, const float *from, size_t count, err *e) {
    (void)q;
    (void)e;
    uint16_t *half = to;
    assert_true(type == DTYPE_F16 || type == DTYPE_BF16);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        half[i] = type == DTYPE_F16 ? half_narrow(from[i]) : (uint16_t)(bits >> 16);
    }
    return true;
}

typedef struct {
    device d;
    queue *q;
    space *s;
} stage;

static void stage_open(stage *t, bool host_memory) {
    err e;
    *t = (stage){.d = cpu_device};
    t->d.host_memory = host_memory;
    t->d.write = card_write;
    t->d.allocate = card_allocate;
    t->d.narrow = card_narrow;
    t->q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(t->q != NULL, &e);
    t->s = space_new(&t->d, t->q, 1 << 20, &e);
    support_ok(t->s != NULL, &e);
    writes = allocations = 0;
}

static void stage_close(stage *t) {
    assert_int_equal(allocations, 0); // beside the space
    assert_int_equal(space_used(t->s), 0);
    space_free(t->s);
    cpu_device.close(t->q);
}

static store *placed(stage *t, const graph *g, store_purpose purpose) {
    err e;
    store *s = store_new(t->d.host_memory);
    store_add(s, g, purpose);
    support_ok(store_place(s, t->q, t->s, &e), &e);
    return s;
}

// Graphs

enum { IN = 5, HIDDEN = 7, OUT = 3, ROWS = 4 };
static const float series[ROWS * IN] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, balance[OUT] = {1, 2, 0.5f};
static const int32_t labels[ROWS] = {0, 1, 2, 1};
static const float ones[ROWS] = {1, 1, 1, 1};

// Two layers and a head whose parameters are made in another order with `turned`: the same names, another layout.
typedef struct {
    graph *g;
    tensor w1, b1, w2, data, balance, totals, seed;
} made;

static tensor parameter(graph *g, const char *name, shape s) {
    return graph_parameter(g, name, s, (init){INIT_UNIFORM, 0.5f});
}

static made make(bool turned, precision p) {
    made m = {.g = graph_new()};
    if (turned) m.w2 = parameter(m.g, "w2", shape2(OUT, HIDDEN));
    if (turned) m.b1 = parameter(m.g, "b1", shape1(HIDDEN));
    m.w1 = parameter(m.g, "w1", shape2(HIDDEN, IN));
    if (!turned) m.b1 = parameter(m.g, "b1", shape1(HIDDEN));
    if (!turned) m.w2 = parameter(m.g, "w2", shape2(OUT, HIDDEN));
    m.data = graph_constant(m.g, "series", DTYPE_F32, shape2(ROWS, IN), series);
    graph_share(m.g, m.data);
    m.balance = graph_constant(m.g, "balance", DTYPE_F32, shape1(OUT), balance);
    tensor label = graph_constant(m.g, "label", DTYPE_I32, shape1(ROWS), labels),
           weight = graph_constant(m.g, "weight", DTYPE_F32, shape1(ROWS), ones);
    tensor h = op_linear(m.g, m.data, m.w1, m.b1, ACT_TANH), y = op_linear(m.g, h, m.w2, TENSOR_NONE, ACT_NONE);
    tensor loss = op_cross_entropy(m.g, y, label, weight, m.balance, 0);
    m.totals = op_tally(m.g, loss);
    graph_normaliser(m.g, m.totals);
    dtype_assign(m.g, p);
    m.seed = grad_build(m.g, loss);
    op_adamw(m.g, op_clip(m.g, m.totals, m.seed, 1, false), (adamw_settings){.beta1 = 0.9f, .beta2 = 0.999f});
    return m;
}

static const float *floats(const store *s, const made *m, tensor t) {
    const float *at = store_address(s, m->g, t);
    assert_non_null(at);
    return at;
}

// Sharing

static void graphs_share_parameters_by_name(void **state) {
    (void)state;
    err e;
    stage t;
    stage_open(&t, true);
    made a = make(false, PRECISION_FP32), b = make(true, PRECISION_FP32);
    assert_true(graph_info(a.g, a.w1)->offset != graph_info(b.g, b.w1)->offset);
    store *s = store_new(true);
    store_add(s, a.g, STORE_FOR_TRAINING);
    size_t bytes = store_bytes(s);
    store_add(s, b.g, STORE_FOR_TRAINING); // nothing that is not there
    assert_int_equal(store_bytes(s), bytes);
    support_ok(store_place(s, t.q, t.s, &e), &e);
    assert_ptr_equal(store_address(s, a.g, a.w1), store_address(s, b.g, b.w1));
    assert_ptr_equal(store_address(s, a.g, a.b1), store_address(s, b.g, b.b1));
    assert_ptr_equal(store_address(s, a.g, a.w2), store_address(s, b.g, b.w2));
    assert_ptr_equal(
        store_address(s, a.g, graph_gradient(a.g, a.w2)), store_address(s, b.g, graph_gradient(b.g, b.w2)));
    assert_ptr_equal(store_address(s, a.g, a.totals), store_address(s, b.g, b.totals));
    float values[HIDDEN], back[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) values[i] = (float)(i + 1);
    support_ok(store_write(s, b.g, b.b1, values, &e) && store_read(s, a.g, a.b1, back, &e), &e);
    assert_memory_equal(values, back, sizeof values);
    // The whole slab lies as in the graph that was added first.
    assert_ptr_equal(floats(s, &a, graph_slab(a.g, SLAB_WEIGHTS)) + graph_info(a.g, a.b1)->offset, floats(s, &b, b.b1));
    store_free(s);
    graph_free(a.g);
    graph_free(b.g);
    stage_close(&t);
}

// Gradients and normaliser are one stretch, so that one operation can sum both over devices.
static void the_normaliser_lies_behind_the_gradients(void **state) {
    (void)state;
    stage t;
    stage_open(&t, true);
    made m = make(false, PRECISION_FP32);
    store *s = placed(&t, m.g, STORE_FOR_TRAINING);
    const float *gradients = floats(s, &m, graph_slab(m.g, SLAB_GRADIENTS));
    assert_ptr_equal(store_address(s, m.g, m.totals), gradients + graph_slab_elements(m.g));
    const tensor all[] = {graph_slab(m.g, SLAB_WEIGHTS), graph_slab(m.g, SLAB_GRADIENTS), graph_slab(m.g, SLAB_MOMENT1),
        graph_slab(m.g, SLAB_MOMENT2), m.totals, m.seed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal((uintptr_t)store_address(s, m.g, all[i]) % PLAN_ALIGN, 0);
    store_free(s);
    graph_free(m.g);
    stage_close(&t);
}

// A store is cleared when it is placed, whatever lay there.
static void a_store_begins_with_zeros(void **state) {
    (void)state;
    err e;
    stage t;
    stage_open(&t, true);
    made m = make(false, PRECISION_FP32);
    void *dirt = space_take(t.s, "dirt", 1 << 19, &e);
    memset(dirt, 0xFF, 1 << 19);
    space_give(t.s, dirt);
    store *s = placed(&t, m.g, STORE_FOR_TRAINING);
    assert_ptr_equal(store_address(s, m.g, graph_slab(m.g, SLAB_WEIGHTS)), dirt);
    const unsigned char *bytes = dirt;
    for (size_t i = 0; i < store_bytes(s); i++) assert_int_equal(bytes[i], 0);
    store_free(s);
    graph_free(m.g);
    stage_close(&t);
}

// 16-bit copies

static void check_low(const store *s, const made *m, tensor t, const float *want) {
    const uint16_t *low = store_low_address(s, m->g, t);
    int64_t n = shape_count(graph_info(m->g, t)->shape);
    assert_non_null(low);
    for (int64_t i = 0; i < n; i++) assert_int_equal(low[i], half_narrow(want[i]));
}

static void copies_of_16_bits_follow(void **state) {
    (void)state;
    err e;
    stage t;
    stage_open(&t, false);
    made m = make(false, PRECISION_FP16), plain = make(true, PRECISION_FP32), brain = make(true, PRECISION_BF16);
    store *s = store_new(false);
    store_add(s, m.g, STORE_FOR_TRAINING);
    size_t bytes = store_bytes(s), slab = (size_t)graph_slab_elements(m.g) * sizeof(float);
    assert_int_equal(store_bytes_of(s, STORE_WEIGHTS), plan_aligned(slab) + plan_aligned(slab / 2));
    store_add(s, plain.g, STORE_FOR_TRAINING);
    store_add(s, brain.g, STORE_FOR_TRAINING);
    assert_int_equal(store_bytes(s), bytes);
    support_ok(store_place(s, t.q, t.s, &e), &e);
    float *all = malloc(slab), some[HIDDEN * IN];
    assert_non_null(all);
    graph_initial(m.g, 3, all);
    support_ok(store_write(s, m.g, graph_slab(m.g, SLAB_WEIGHTS), all, &e), &e);
    check_low(s, &m, m.w1, all + graph_info(m.g, m.w1)->offset);
    check_low(s, &m, m.w2, all + graph_info(m.g, m.w2)->offset);
    for (int i = 0; i < HIDDEN * IN; i++) some[i] = (float)i / 7;
    support_ok(store_write(s, m.g, m.w1, some, &e), &e);
    check_low(s, &m, m.w1, some);
    check_low(s, &m, m.w2, all + graph_info(m.g, m.w2)->offset); // not a neighbour's
    support_ok(store_clear(s, m.g, m.w1, &e), &e);
    memset(some, 0, sizeof some);
    check_low(s, &m, m.w1, some);
    // A graph without 16-bit operators has none; one of another type takes the same place after store_narrow.
    assert_null(store_low_address(s, plain.g, plain.w2));
    support_ok(store_narrow(s, plain.g, &e) && store_narrow(s, brain.g, &e), &e);
    const uint16_t *low = store_low_address(s, brain.g, brain.w2);
    const float *w2 = floats(s, &brain, brain.w2);
    for (int i = 0; i < OUT * HIDDEN; i++) {
        uint32_t bits;
        memcpy(&bits, &w2[i], sizeof bits);
        assert_int_equal(low[i], bits >> 16);
    }
    free(all);
    store_free(s);
    graph_free(m.g);
    graph_free(plain.g);
    graph_free(brain.g);
    stage_close(&t);
}

// A model that predicts beside a training has other parameters' order, no gradients and 16-bit copies of its own.
static void stores_are_copied_by_name(void **state) {
    (void)state;
    err e;
    stage t;
    stage_open(&t, false);
    made a = make(false, PRECISION_FP32), b = make(true, PRECISION_FP16);
    store *from = placed(&t, a.g, STORE_FOR_TRAINING), *to = placed(&t, b.g, STORE_FOR_INFERENCE);
    assert_int_equal(store_bytes_of(to, STORE_GRADIENTS) + store_bytes_of(to, STORE_MOMENTS), 0);
    assert_null(store_address(to, b.g, graph_gradient(b.g, b.w1)));
    size_t slab = (size_t)graph_slab_elements(a.g) * sizeof(float);
    float *all = malloc(slab);
    assert_non_null(all);
    graph_initial(a.g, 3, all);
    support_ok(store_write(from, a.g, graph_slab(a.g, SLAB_WEIGHTS), all, &e) && store_copy(to, from, &e), &e);
    const tensor of[] = {a.w1, a.b1, a.w2}, is[] = {b.w1, b.b1, b.w2};
    for (int k = 0; k < 3; k++) {
        const float *want = all + graph_info(a.g, of[k])->offset;
        size_t bytes = (size_t)shape_count(graph_info(a.g, of[k])->shape) * sizeof(float);
        assert_memory_equal(floats(to, &b, is[k]), want, bytes);
    }
    check_low(to, &b, b.w1, all + graph_info(a.g, a.w1)->offset);
    check_low(to, &b, b.w2, all + graph_info(a.g, a.w2)->offset);
    free(all);
    store_free(from);
    store_free(to);
    graph_free(a.g);
    graph_free(b.g);
    stage_close(&t);
}

// Constants

// A device with its own memory has one copy of a dataset, however many graphs read it; the host's memory is read in
// place.
static void constants_are_copied_once(void **state) {
    (void)state;
    err e;
    for (int host_memory = 0; host_memory < 2; host_memory++) {
        stage t;
        stage_open(&t, host_memory);
        made a = make(false, PRECISION_FP32), b = make(true, PRECISION_FP32);
        store *data = store_new(host_memory);
        store_add(data, a.g, STORE_FOR_DATASET);
        store_add(data, b.g, STORE_FOR_DATASET);
        assert_int_equal(store_bytes(data), host_memory ? 0 : plan_aligned(sizeof series));
        assert_int_equal(store_bytes_of(data, STORE_CONSTANTS), store_bytes(data));
        support_ok(store_place(data, t.q, t.s, &e), &e);
        assert_int_equal(writes, host_memory ? 0 : 1);
        const void *at = store_address(data, a.g, a.data);
        assert_ptr_equal(at, store_address(data, b.g, b.data));
        assert_int_equal(at == (const void *)series, host_memory);
        assert_memory_equal(at, series, sizeof series);
        assert_null(store_address(data, a.g, a.balance)); // no dataset's
        store *own = placed(&t, a.g, STORE_FOR_TRAINING);
        assert_null(store_address(own, a.g, a.data)); // another store's
        assert_int_equal(store_address(own, a.g, a.balance) == (const void *)balance, host_memory);
        assert_int_equal(writes, host_memory ? 0 : 4); // labels, weights, balance and the data
        store_free(own);
        store_free(data);
        graph_free(a.g);
        graph_free(b.g);
        stage_close(&t);
    }
}

// Graphs of one model in two precisions make constants of the same values, each in memory of its own.
static void equal_constants_are_one(void **state) {
    (void)state;
    static const float same[OUT] = {1, 2, 0.5f};
    graph *a = graph_new(), *b = graph_new();
    graph_keep(a, op_axpby(a, graph_constant(a, "c", DTYPE_F32, shape1(OUT), balance), TENSOR_NONE, 1, 0));
    graph_keep(b, op_axpby(b, graph_constant(b, "c", DTYPE_F32, shape1(OUT), same), TENSOR_NONE, 1, 0));
    store *s = store_new(false);
    store_add(s, a, STORE_FOR_INFERENCE);
    size_t bytes = store_bytes(s);
    store_add(s, b, STORE_FOR_INFERENCE);
    assert_int_equal(store_bytes(s), bytes);
    store_free(s);
    graph_free(a);
    graph_free(b);
}

// Mistakes: the same name, another tensor.

static void another_parameter(void) {
    made m = make(false, PRECISION_FP32);
    graph *g = graph_new();
    tensor x = graph_constant(g, "x", DTYPE_F32, shape2(ROWS, IN), series);
    op_linear(g, x, parameter(g, "w1", shape2(HIDDEN + 1, IN)), TENSOR_NONE, ACT_NONE);
    store *s = store_new(true);
    store_add(s, m.g, STORE_FOR_TRAINING);
    store_add(s, g, STORE_FOR_INFERENCE);
}

static void another_state(void) {
    graph *a = graph_new(), *b = graph_new();
    op_axpby(a, graph_state(a, "sum", DTYPE_F32, shape1(2)), TENSOR_NONE, 1, 0);
    op_axpby(b, graph_state(b, "sum", DTYPE_F32, shape1(3)), TENSOR_NONE, 1, 0);
    store *s = store_new(true);
    store_add(s, a, STORE_FOR_INFERENCE);
    store_add(s, b, STORE_FOR_INFERENCE);
}

static void another_dataset(void) {
    static const float other[ROWS * IN] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; // equal, but not the one copy
    graph *a = graph_new(), *b = graph_new();
    tensor x = graph_constant(a, "x", DTYPE_F32, shape1(ROWS * IN), series);
    tensor y = graph_constant(b, "x", DTYPE_F32, shape1(ROWS * IN), other);
    graph_share(a, x);
    graph_share(b, y);
    op_axpby(a, x, TENSOR_NONE, 1, 0);
    op_axpby(b, y, TENSOR_NONE, 1, 0);
    store *s = store_new(true);
    store_add(s, a, STORE_FOR_DATASET);
    store_add(s, b, STORE_FOR_DATASET);
}

static void add_constants(const float *first, const float *second) {
    graph *a = graph_new(), *b = graph_new();
    graph_keep(a, op_axpby(a, graph_constant(a, "c", DTYPE_F32, shape1(OUT), first), TENSOR_NONE, 1, 0));
    graph_keep(b, op_axpby(b, graph_constant(b, "c", DTYPE_F32, shape1(OUT), second), TENSOR_NONE, 1, 0));
    store *s = store_new(true);
    store_add(s, a, STORE_FOR_INFERENCE);
    store_add(s, b, STORE_FOR_INFERENCE);
}

static const float small[OUT] = {1, 2, 3}, large[OUT] = {1, 2, 4};

static void a_larger_constant(void) {
    add_constants(small, large);
}

static void a_smaller_constant(void) {
    add_constants(large, small);
}

static void rows_of_a_batch(void) {
    graph *g = graph_new();
    op_axpby(g, graph_constant(g, "x", DTYPE_F32, shape2(BATCH, 1), series), TENSOR_NONE, 1, 0);
    store_add(store_new(true), g, STORE_FOR_INFERENCE);
}

static void add_after_placing(void) {
    stage t;
    stage_open(&t, true);
    graph *a = graph_new(), *b = graph_new();
    op_axpby(a, graph_state(a, "sum", DTYPE_F32, shape1(2)), TENSOR_NONE, 1, 0);
    op_axpby(b, graph_state(b, "norm", DTYPE_F32, shape1(3)), TENSOR_NONE, 1, 0);
    store_add(placed(&t, a, STORE_FOR_INFERENCE), b, STORE_FOR_INFERENCE);
}

static void other_tensors_of_a_name_are_mistakes(void **state) {
    (void)state;
    support_aborts(another_parameter, "parameter w1 is not in the store, or has another shape");
    support_aborts(another_state, "sum is in a store with another type, shape or memory");
    support_aborts(a_larger_constant, "c is in a store with another type, shape or memory");
    support_aborts(a_smaller_constant, "c is in a store with another type, shape or memory");
    support_aborts(another_dataset, "x is in a store with another type, shape or memory");
    support_aborts(rows_of_a_batch, "constant x has a row for each of a batch");
    support_aborts(add_after_placing, "norm is added to a store that has its memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_share_parameters_by_name),
        cmocka_unit_test(the_normaliser_lies_behind_the_gradients),
        cmocka_unit_test(a_store_begins_with_zeros),
        cmocka_unit_test(copies_of_16_bits_follow),
        cmocka_unit_test(stores_are_copied_by_name),
        cmocka_unit_test(constants_are_copied_once),
        cmocka_unit_test(equal_constants_are_one),
        cmocka_unit_test(other_tensors_of_a_name_are_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

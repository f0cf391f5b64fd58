// Programs: evaluation, constants in the types of the device, and devices that fail.
#include "graph/solo.h"

#include "cpu/cpu.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Constants of floats, in the precision that tests use.
static void constants_are_widened(void **state) {
    (void)state;
    err e;
    enum { ROWS = 3 };
    static const float rows[ROWS] = {1, -2.5f, 3}, fixed[2] = {0.5f, 7};
    graph *g = graph_new();
    tensor a = op_axpby(g, graph_constant(g, "a", DTYPE_F32, shape2(ROWS, 1), rows), TENSOR_NONE, 2, 0);
    tensor b = op_axpby(g, graph_constant(g, "b", DTYPE_F32, shape1(2), fixed), TENSOR_NONE, 1, 0);
    graph_keep(g, a);
    graph_keep(g, b);
    dtype_assign(g, PRECISION_FP64);
    queue *q = cpu_double_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    solo *x = solo_new(&cpu_double_device, q, g, &(solo_options){.rows = ROWS, .inference = true}, &e);
    support_ok(x != NULL, &e);
    double got[ROWS];
    support_ok(solo_play(x, PASS_EVALUATE, &e) && solo_peek(x, a, false, got, &e), &e);
    for (int i = 0; i < ROWS; i++) assert_true(got[i] == 2 * (double)rows[i]);
    support_ok(solo_peek(x, b, false, got, &e), &e);
    assert_true(got[0] == 0.5 && got[1] == 7);
    solo_free(x);
    cpu_double_device.close(q);
    graph_free(g);
}

// States with a row for each of a batch are the program's own, each in a place of its own.
static void states_of_rows_lie_apart(void **state) {
    (void)state;
    err e;
    enum { ROWS = 5, WIDTH = 200, N = ROWS * WIDTH };
    static float a_data[N], b_data[N], got[N];
    for (int i = 0; i < N; i++) a_data[i] = (float)i, b_data[i] = (float)(7 * i);
    graph *g = graph_new();
    tensor a = graph_state(g, "a", DTYPE_F32, shape2(BATCH, WIDTH)),
           b = graph_state(g, "b", DTYPE_F32, shape2(BATCH, WIDTH));
    tensor sum = op_axpby(g, a, b, 1, 1);
    graph_keep(g, sum);
    dtype_assign(g, PRECISION_FP32);
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    solo *x = solo_new(&cpu_device, q, g, &(solo_options){.rows = ROWS, .inference = true}, &e);
    support_ok(x && solo_write(x, a, a_data, &e) && solo_write(x, b, b_data, &e), &e);
    support_ok(solo_play(x, PASS_EVALUATE, &e) && solo_peek(x, sum, false, got, &e), &e);
    for (int i = 0; i < N; i++) assert_true(got[i] == 8 * (float)i);
    solo_free(x);
    cpu_device.close(q);
    graph_free(g);
}

// As many steps at once as leave the fewest recordings to start, single steps among them.
static void steps_together_leave_the_fewest_starts(void **state) {
    (void)state;
    rig r;
    device card = cpu_device;
    card.host_memory = false;
    rig_open(&r, &cpu_device, 1, "model.kind=mlp model.widths=4");
    for (int64_t steps = 1; steps < 300; steps++) {
        int64_t fewest = steps;
        for (int64_t n = 2; n <= 64; n++) fewest = steps / n + steps % n < fewest ? steps / n + steps % n : fewest;
        int64_t n = program_together(&card, r.job.g, 8, steps);
        assert_true(n >= 0 && n <= 64);
        assert_int_equal(n ? steps / n + steps % n : steps, fewest);
        assert_int_equal(program_together(&cpu_device, r.job.g, 8, steps), 0);
    }
    rig_close(&r);
}

static int plays;

static bool counted_play(queue *q, recording *r, err *e) {
    plays++;
    return cpu_device.play(q, r, e);
}

// Evaluates `times` times, each with the next rows of a table, which it doubles and writes into another; returns the
// recordings played.
static int evaluate_often(int times, int together, bool host_memory, float *to, uint64_t *row) {
    enum { ROWS = 3, ALL = 60 };
    static float from[ALL];
    err e;
    device d = cpu_device;
    d.play = counted_play;
    d.host_memory = host_memory;
    for (int i = 0; i < ALL; i++) from[i] = (float)(i * i);
    graph *g = graph_new();
    tensor a = op_take(g, graph_constant(g, "from", DTYPE_F32, shape1(ALL), from), op_draw(g, BATCH));
    tensor table = graph_state(g, "to", DTYPE_F32, shape1(ALL));
    op_write_rows(g, table, op_axpby(g, a, TENSOR_NONE, 2, 0));
    op_advance(g, PHASE_AFTER);
    dtype_assign(g, PRECISION_FP32);
    queue *q = d.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    solo *x = solo_new(&d, q, g, &(solo_options){.rows = ROWS, .inference = true, .together = together}, &e);
    support_ok(x != NULL, &e);
    solo_step s = {.count = ALL};
    support_ok(solo_step_write(x, &s, &e), &e);
    plays = 0;
    support_ok(program_play_steps(solo_program(x, false), times, &e), &e);
    support_ok(solo_read(x, table, to, &e) && solo_step_read(x, &s, &e), &e);
    *row = s.row;
    solo_free(x);
    d.close(q);
    graph_free(g);
    return plays;
}

static void evaluations_together_are_the_same(void **state) {
    (void)state;
    enum { ALL = 60, TIMES = 19 };
    float one[ALL], many[ALL];
    uint64_t row, row_many;
    assert_int_equal(evaluate_often(TIMES, 0, true, one, &row), TIMES);
    assert_int_equal(row, TIMES * 3);
    for (int i = 0; i < ALL; i++) assert_true(one[i] == (i < TIMES * 3 ? 2 * (float)(i * i) : 0));
    for (int host = 0; host < 2; host++) {
        assert_int_equal(evaluate_often(TIMES, 8, host, many, &row_many), TIMES / 8 + TIMES % 8);
        assert_int_equal(row, row_many);
        assert_memory_equal(one, many, sizeof one);
    }
}

// Logits and counts of the validation samples' first rows.
static void evaluate(rig *r, solo *x, float *logits, int64_t *confusion) {
    err e;
    float *w = malloc((size_t)graph_slab_elements(r->job.g) * sizeof *w);
    assert_non_null(w);
    graph_initial(r->job.g, 5, w);
    support_ok(solo_write(x, graph_slab(r->job.g, SLAB_WEIGHTS), w, &e), &e);
    solo_step s = {.first = (uint64_t)part_first(&r->split.validation), .count = (uint64_t)r->split.validation.count};
    support_ok(solo_step_write(x, &s, &e), &e);
    support_ok(solo_clear(x, r->job.confusion, &e), &e);
    support_ok(solo_poison(x, 0xFF, false, &e), &e);
    support_ok(solo_play(x, PASS_EVALUATE, &e) && solo_peek(x, r->job.logits, false, logits, &e), &e);
    support_ok(solo_read(x, r->job.confusion, confusion, &e), &e);
    free(w);
}

// Inference takes no gradients, no moments and the transient memory of evaluation alone.
static void check_lean(const rig *r, int64_t rows, size_t bytes) {
    store *s = store_new(true);
    store_add(s, r->job.g, STORE_FOR_INFERENCE);
    assert_int_equal(store_bytes_of(s, STORE_GRADIENTS) + store_bytes_of(s, STORE_MOMENTS), 0);
    program_options o = {.graph = r->job.g, .rows = rows, .passes = PASS_BIT(PASS_EVALUATE)};
    program *p = program_new(&cpu_device, r->queue, &o);
    size_t own = space_aligned(program_own(p)), transient = space_aligned(program_transient(p));
    assert_int_equal(bytes, space_aligned(store_bytes(s)) + own + transient);
    program_free(p);
    store_free(s);
}

static void inference_equals_evaluation(void **state) {
    (void)state;
    err e;
    enum { ROWS = 40, CLASSES = 3 };
    rig r;
    rig_open(&r, &cpu_device, 2, "");
    graph_keep(r.job.g, r.job.logits);
    float full[ROWS * CLASSES], lean[ROWS * CLASSES];
    int64_t counted[2][CLASSES * CLASSES];
    size_t bytes[2];
    for (int inference = 0; inference < 2; inference++) {
        solo_options o = {.rows = ROWS, .inference = inference};
        solo *x = solo_new(&cpu_device, r.queue, r.job.g, &o, &e);
        support_ok(x != NULL, &e);
        evaluate(&r, x, inference ? lean : full, counted[inference]);
        bytes[inference] = solo_bytes(x);
        assert_int_equal(solo_program(x, true) == NULL, inference);
        solo_free(x);
    }
    assert_memory_equal(full, lean, sizeof full);
    assert_memory_equal(counted[0], counted[1], sizeof counted[0]);
    check_lean(&r, ROWS, bytes[1]);
    assert_true(bytes[0] > bytes[1] + 3 * (size_t)graph_slab_elements(r.job.g) * sizeof(float));
    rig_close(&r);
}

// Devices that fail

static int failing_call;
static int calls_made;

static bool fails(err *e) {
    if (calls_made++ != failing_call) return false;
    err_run(e, "the device gave up");
    return true;
}

static void *failing_allocate(queue *q, size_t bytes, err *e) {
    return fails(e) ? NULL : cpu_device.allocate(q, bytes, e);
}

static bool failing_write(queue *q, void *to, const void *from, size_t bytes, err *e) {
    return !fails(e) && cpu_device.write(q, to, from, bytes, e);
}

static recording *failing_record(queue *q, room *m, call *calls, int count, err *e) {
    return fails(e) ? NULL : cpu_device.record(q, m, calls, count, e);
}

static bool failing_play(queue *q, recording *p, err *e) {
    return !fails(e) && cpu_device.play(q, p, e);
}

static bool failing_read(queue *q, void *to, const void *from, size_t bytes, err *e) {
    return !fails(e) && cpu_device.read(q, to, from, bytes, e);
}

static bool failing_fill(queue *q, void *to, int byte, size_t bytes, err *e) {
    return !fails(e) && cpu_device.fill(q, to, byte, bytes, e);
}

static bool failing_sync(queue *q, err *e) {
    return !fails(e) && cpu_device.sync(q, e);
}

static bool train_on(const device *d, rig *r, err *e) {
    train_result result;
    trainer *t = trainer_new(d, r->queue, &r->job, r->data, &r->split, &r->settings, e);
    bool ok = t && trainer_run(t, &(watcher){.arg = NULL}, &result, e);
    trainer_free(t);
    return ok;
}

// The nth use of the device fails, for every n until all succeed: each is told, none leaks or goes on.
static void every_failure_is_passed_up(void **state) {
    (void)state;
    device d = cpu_device;
    d.host_memory = false;
    d.allocate = failing_allocate;
    d.write = failing_write;
    d.record = failing_record;
    d.play = failing_play;
    d.read = failing_read;
    d.fill = failing_fill;
    d.sync = failing_sync;
    rig r;
    rig_open(&r, &d, 1,
        "data.synthetic.bars=1000 model.kind=mlp model.widths=4 data.windows.fast=2 data.windows.slow=2 "
        "train.batch_size=200 train.epochs=2");
    for (failing_call = 0;; failing_call++) {
        err e = {0};
        calls_made = 0;
        if (train_on(&d, &r, &e)) break;
        assert_int_equal(e.kind, ERR_RUN);
        assert_string_equal(e.text, "the device gave up");
        assert_int_equal(calls_made, failing_call + 1);
    }
    assert_true(failing_call > 30);
    assert_int_equal(calls_made, failing_call);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_widened),
        cmocka_unit_test(states_of_rows_lie_apart),
        cmocka_unit_test(steps_together_leave_the_fewest_starts),
        cmocka_unit_test(evaluations_together_are_the_same),
        cmocka_unit_test(inference_equals_evaluation),
        cmocka_unit_test(every_failure_is_passed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

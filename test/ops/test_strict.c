// The device that holds operators to their traits sees a kernel that breaks them.
#include "ops/strict.h"

#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A device whose kernels all add 1 to their first input.
static const kernel plain = {0};

static const kernel *const *kernels(const queue *q) {
    static const kernel *table[OP_COUNT];
    (void)q;
    for (int i = 0; i < OP_COUNT; i++) table[i] = &plain;
    return table;
}

static recording *record(queue *q, room *in, call *calls, int count, err *e) {
    (void)q;
    (void)in;
    (void)e;
    assert_int_equal(count, 1);
    return (recording *)calls;
}

static void forget(queue *q, recording *r) {
    (void)q;
    (void)r;
}

static bool play(queue *q, recording *r, err *e) {
    const call *c = (const call *)r;
    (void)q;
    (void)e;
    ++*(float *)c->in[0].data;
    return true;
}

static const device rude = {.host_memory = true, .kernels = kernels, .record = record, .forget = forget, .play = play};

static bool plays(op o, bool backward, err *e) {
    float value = 1, gradient = 1;
    step_progress training = {0};
    step_cursor samples = {0};
    operand in = {.data = &value, .shape = shape1(1)}, din = {.data = &gradient, .shape = shape1(1)};
    call c = {.op = (int)o, .name = op_name(o), .backward = backward, .inputs = 1, .in = &in, .din = &din};
    c.step = (step){&training, &samples};
    const device *d = strict_device(&rude);
    recording *r = d->record(NULL, NULL, &c, 1, e);
    assert_non_null(r);
    bool seen = op_traits(o) & (READS_STEP | WRITES_STEP);
    assert_true(c.step.progress == (seen ? &training : NULL) && c.step.cursor == (seen ? &samples : NULL));
    bool ok = d->play(NULL, r, e);
    d->forget(NULL, r);
    return ok;
}

static void only_optimizers_change_their_inputs(void **state) {
    (void)state;
    for (int o = 0; o < OP_COUNT; o++) {
        err e = {0};
        if (op_traits((op)o) & WRITES_WEIGHTS) {
            assert_true(plays((op)o, false, &e));
            continue;
        }
        assert_false(plays((op)o, false, &e));
        assert_non_null(strstr(e.text, op_name((op)o)));
        assert_false(plays((op)o, true, &e));
    }
}

static void traits_are_those_of_the_kernels(void **state) {
    (void)state;
    assert_int_equal(op_traits(OP_linear), 0);
    assert_int_equal(op_traits(OP_lstm), BY_STEPS);
    assert_int_equal(op_traits(OP_dropout), READS_STEP);
    assert_int_equal(op_traits(OP_sgd), READS_STEP | WRITES_WEIGHTS);
    assert_int_equal(op_traits(OP_advance), READS_STEP | WRITES_STEP);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_optimizers_change_their_inputs),
        cmocka_unit_test(traits_are_those_of_the_kernels),
    };
    return cmocka_run_group_tests_name("strict", tests, NULL, NULL);
}

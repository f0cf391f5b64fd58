// Training on the card as a whole: a replayed graph gives the bits that launching one by one gives, equal runs give
// equal bits, steps played together give the bits of single ones, batches streamed from the host those of data on the
// card, every precision follows the CPU's loss, and fp16 survives an overflow or says that it cannot. Built as
// gpu_test_card only. With --card it just says which card there is, and fails where there is none.
#include "cpu/cpu.h"
#include "graph/plugin.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PRECISIONS = 4 };
static const precision all[PRECISIONS] = {PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16};

// Graph or eager is decided when a queue is opened.
#define EAGER "TRADEWIND_CUDA_DEBUG"

static const device *open_card(err *e) {
    static const device *card;
    bool found;
    if (!card) card = plugin_open("tradewind-cuda.so", &found, e);
    return card;
}

static const device *card_device(void) {
    err e;
    const device *d = open_card(&e);
    support_ok(d != NULL, &e);
    return d;
}

// Whether the card computes in p; where not, says so.
static bool computed(precision p) {
    err e;
    const device *d = card_device();
    queue *q = d->open(&(queue_options){0}, &e);
    support_ok(q != NULL, &e);
    bool yes = d->computes(q, p);
    d->close(q);
    if (!yes) print_message("SKIPPED: %s, which these kernels do not compute\n", precision_name(p));
    return yes;
}

// A run and what is left of it

typedef struct {
    size_t bytes;
    float *weights;
    epoch_report last;
} outcome;

static void note(void *arg, const epoch_report *r) {
    ((outcome *)arg)->last = *r;
}

static outcome *trained(const device *d, precision p, const char *keys) {
    err e;
    rig r;
    train_result result;
    outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    rig_open_in(&r, d, 0, p, keys);
    trainer *t = rig_trainer(&r);
    support_ok(trainer_run(t, &(watcher){.on_epoch = note, .arg = o}, &result, &e), &e);
    o->weights = rig_weights(&r, t);
    o->bytes = (size_t)graph_slab_elements(r.job.g) * sizeof *o->weights;
    trainer_free(t);
    rig_close(&r);
    return o;
}

static void outcome_free(outcome *o) {
    free(o->weights);
    free(o);
}

static void check_same(const char *what, precision p, const char *keys, const outcome *a, const outcome *b) {
    size_t different = 0, n = a->bytes / sizeof *a->weights;
    assert_int_equal(a->bytes, b->bytes);
    for (size_t i = 0; i < n; i++) different += memcmp(&a->weights[i], &b->weights[i], sizeof *a->weights) != 0;
    if (different) fail_msg("%s, %s, %s: %zu of %zu weights differ", what, precision_name(p), keys, different, n);
    if (a->last.train.loss != b->last.train.loss || a->last.validation.loss != b->last.validation.loss)
        fail_msg("%s, %s, %s: losses differ", what, precision_name(p), keys);
    assert_true(isfinite(a->last.train.loss) && a->last.skipped == 0);
}

// Exactness

#define SMALL "data.synthetic.bars=1500 data.split.embargo=0 train.batch_size=48 train.epochs=2 train.patience=9 "

static const char *const models[] = {
    SMALL "model.kind=lstm",
    SMALL "model.kind=lstm model.layers=2 model.hidden.fast=40 model.hidden.slow=24 data.windows.fast=21",
    SMALL "model.kind=lstm model.hidden.fast=72 model.hidden.slow=7 gpu_optimization.gradient_accumulation_steps=3",
    SMALL "model.kind=mlp train.class_weights=balanced train.label_smoothing=0.1",
    SMALL "model.kind=mlp model.widths=100-37 model.activation=gelu train.optimizer.kind=sgd",
};
enum { MODELS = sizeof models / sizeof *models };

static void graph_equals_eager(void **state) {
    (void)state;
    for (int k = 0; k < PRECISIONS; k++) {
        if (!computed(all[k])) continue;
        for (int i = 0; i < MODELS; i++) {
            unsetenv(EAGER);
            outcome *graph = trained(card_device(), all[k], models[i]);
            setenv(EAGER, "1", 1);
            outcome *eager = trained(card_device(), all[k], models[i]);
            unsetenv(EAGER);
            check_same("graph and eager", all[k], models[i], graph, eager);
            outcome_free(graph);
            outcome_free(eager);
        }
    }
}

static void equal_runs_give_equal_bits(void **state) {
    (void)state;
    for (int k = 0; k < PRECISIONS; k++) {
        if (!computed(all[k])) continue;
        for (int i = 0; i < MODELS; i++) {
            outcome *once = trained(card_device(), all[k], models[i]),
                    *again = trained(card_device(), all[k], models[i]);
            check_same("two runs", all[k], models[i], once, again);
            outcome_free(once);
            outcome_free(again);
        }
    }
}

// Recorded together, the end of a step and the start of the next may run side by side where a single one would wait.
static void together_equals_single_steps(void **state) {
    (void)state;
    for (int k = 0; k < PRECISIONS; k++) {
        if (!computed(all[k])) continue;
        for (int i = 0; i < MODELS; i++) rig_check_together(card_device(), all[k], models[i]);
    }
}

// Batches that are copied in beside the steps that read them: many small steps, in which the host runs far ahead, and
// batches large enough that a copy and a step take turns at being the slower one.
static void streaming_changes_no_bit(void **state) {
    (void)state;
    static const char *const runs[] = {
        "data.synthetic.bars=30000 train.batch_size=16 train.epochs=2 model.kind=mlp model.widths=32",
        "data.synthetic.bars=30000 train.batch_size=16 train.epochs=1 model.kind=mlp model.widths=32 "
        "gpu_optimization.gradient_accumulation_steps=2",
        "data.synthetic.bars=60000 train.batch_size=3072 train.epochs=4 train.patience=9",
        "data.synthetic.bars=60000 train.batch_size=1000 train.epochs=2 data.scale=standard "
        "gpu_optimization.gradient_accumulation_steps=2",
        "data.synthetic.bars=20000 train.batch_size=256 train.epochs=1 model.kind=transformer",
    };
    static const precision modes[] = {PRECISION_FP32, PRECISION_BF16};
    for (size_t i = 0; i < 2 * sizeof runs / sizeof *runs; i++) {
        char keys[512];
        precision p = modes[i % 2];
        if (!computed(p)) continue;
        snprintf(keys, sizeof keys, "%s data.residency=device", runs[i / 2]);
        outcome *there = trained(card_device(), p, keys);
        snprintf(keys, sizeof keys, "%s data.residency=host data.num_workers=6", runs[i / 2]);
        outcome *fed = trained(card_device(), p, keys), *again = trained(card_device(), p, keys);
        check_same("device and host", p, keys, there, fed);
        check_same("host, two runs", p, keys, fed, again);
        outcome_free(there);
        outcome_free(fed);
        outcome_free(again);
    }
}

// The loss after an epoch, with the same samples and the same dropout as on the CPU, within 1 % of it.
static void check_loss(const char *keys) {
    outcome *cpu = trained(&cpu_device, PRECISION_FP32, keys);
    double want = cpu->last.train.loss;
    for (int k = 0; k < PRECISIONS; k++) {
        if (!computed(all[k])) continue;
        outcome *o = trained(card_device(), all[k], keys);
        double is = o->last.train.loss;
        print_message("%s: training loss %.5f, the CPU's %.5f (%+.3f %%); validation %.5f and %.5f\n",
            precision_name(all[k]), is, want, 100 * (is / want - 1), o->last.validation.loss,
            cpu->last.validation.loss);
        if (!(fabs(is / want - 1) <= 0.01)) fail_msg("%s, %s", precision_name(all[k]), keys);
        assert_int_equal(o->last.skipped, 0);
        outcome_free(o);
    }
    outcome_free(cpu);
}

static void losses_follow_the_cpu(void **state) {
    (void)state;
    check_loss("data.synthetic.bars=20000 train.batch_size=128 train.epochs=1 train.optimizer.lr=2e-3");
    check_loss("data.synthetic.bars=20000 train.batch_size=128 train.epochs=1 model.kind=mlp");
}

// fp16

// A scale at which every gradient overflows: it comes down by itself, and training goes on.
static void fp16_comes_down_from_an_overflow(void **state) {
    (void)state;
    err e;
    rig r;
    static outcome o;
    train_result result;
    static const float high[2] = {0x1p30f, 0};
    rig_open_in(&r, card_device(), 0, PRECISION_FP16,
        "data.synthetic.bars=6000 train.batch_size=64 train.epochs=2 train.optimizer.lr=2e-3");
    trainer *t = rig_trainer(&r);
    support_ok(exec_write(trainer_exec(t), r.job.seed, high, &e), &e);
    support_ok(trainer_run(t, &(watcher){.on_epoch = note, .arg = &o}, &result, &e), &e);
    print_message("%lld steps skipped, loss scale %g, training loss %.4f\n", (long long)o.last.skipped,
        (double)o.last.loss_scale, o.last.train.loss);
    assert_true(o.last.skipped >= 10 && o.last.skipped <= 30);
    assert_true((double)o.last.loss_scale == ldexp(1, 30 - (int)o.last.skipped));
    assert_true(isfinite(o.last.grad_norm) && o.last.train.loss < 0.95);
    trainer_free(t);
    rig_close(&r);
}

static void fp16_says_when_it_cannot(void **state) {
    (void)state;
    err e;
    rig r;
    train_result result;
    rig_open_in(&r, card_device(), 0, PRECISION_FP16, "model.kind=mlp train.batch_size=8 train.epochs=2");
    trainer *t = rig_trainer(&r);
    float *weights = rig_weights(&r, t);
    weights[0] = NAN;
    support_ok(exec_write(trainer_exec(t), graph_slab(r.job.g, SLAB_WEIGHTS), weights, &e), &e);
    assert_false(trainer_run(t, &(watcher){.arg = NULL}, &result, &e));
    print_message("%s\n", e.text);
    assert_non_null(strstr(e.text, "bf16"));
    assert_non_null(strstr(e.text, "loss scale of 1;"));
    free(weights);
    trainer_free(t);
    rig_close(&r);
}

static int say_which_card(void) {
    err e;
    char text[512];
    const device *d = open_card(&e);
    queue *q = d ? d->open(&(queue_options){0}, &e) : NULL;
    if (!q) {
        fprintf(stderr, "no card: %s\n", e.text);
        return 1;
    }
    d->describe(q, text, sizeof text);
    printf("%s\n", text);
    d->close(q);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graph_equals_eager),
        cmocka_unit_test(equal_runs_give_equal_bits),
        cmocka_unit_test(together_equals_single_steps),
        cmocka_unit_test(streaming_changes_no_bit),
        cmocka_unit_test(losses_follow_the_cpu),
        cmocka_unit_test(fp16_comes_down_from_an_overflow),
        cmocka_unit_test(fp16_says_when_it_cannot),
    };
    if (argc > 1 && strcmp(argv[1], "--card") == 0) return say_which_card();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

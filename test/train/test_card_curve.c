// Losses on the card: every precision follows fp32 there, and fp32 follows the CPU. Built as gpu_test_card_curve only.
//
// The same samples and the same dropout everywhere; what differs is rounding. Over an epoch of 100 steps or more (50 of
// nbeats) the mean loss stays within 1 % of fp32's in the 16-bit precisions and tf32, whoever computes the products.
#include "cpu/cpu.h"
#include "parts.h"
#include "train/card.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FEW "train.batch_size=128 train.steps=50 train.optimizer.lr=5e-4 "

static epoch_report curve(const device *d, precision p, const card_job *j, const char *more) {
    static epoch_report r;
    assert_true(card_train(&(card_run){.device = d, .precision = p, .job = j, .more = more}, &r));
    return r;
}

static void check_near(const char *what, const card_job *j, const epoch_report *is, const epoch_report *want) {
    double off = is->train.loss / want->train.loss - 1;
    print_message(
        "%s, %s: training loss %.5f, not %.5f (%+.3f %%); validation %.5f and %.5f; %lld steps, %lld skipped\n",
        j->name, what, is->train.loss, want->train.loss, 100 * off, is->validation.loss, want->validation.loss,
        (long long)is->update, (long long)is->skipped);
    if (!(fabs(off) <= 0.01)) fail_msg("%s, %s: training loss is off by %.2f %%", j->name, what, 100 * off);
    assert_int_equal(is->skipped, 0);
}

static void check_curves(const card_job *j, const char *more, int64_t steps) {
    static epoch_report want, is;
    want = curve(card_device(), PRECISION_FP32, j, more);
    assert_true((int64_t)want.update >= steps);
    for (int k = 0; k < CARD_PRECISIONS; k++) {
        precision p = card_precisions[k];
        if (p == PRECISION_FP32 || !card_computes(p)) continue;
        is = curve(card_device(), p, j, more);
        check_near(precision_name(p), j, &is, &want);
    }
}

static void lstm_follows_fp32(void **state) {
    (void)state;
    check_curves(card_kinds[0], "data.synthetic.bars=20000 train.batch_size=128 train.optimizer.lr=2e-3", 100);
}

static void mlp_follows_fp32(void **state) {
    (void)state;
    check_curves(card_kinds[1], "", 100);
}

static void transformer_follows_fp32(void **state) {
    (void)state;
    check_curves(card_kinds[2], "train.optimizer.lr=5e-4", 100);
}

static void nbeats_follows_fp32(void **state) {
    (void)state;
    check_curves(card_kinds[3], "train.steps=50", 50);
}

// 128 rows are few enough for the rule to leave layers to our own kernels that the library takes where it is asked for.
// The LSTM's linear layers are too small for either.
static void products_of_any_make_follow_fp32(void **state) {
    (void)state;
    for (int i = 1; i < CARD_KINDS; i++) {
        check_curves(card_kinds[i], FEW "gpu_optimization.products=own", 50);
        check_curves(card_kinds[i], FEW "gpu_optimization.products=library", 50);
    }
}

static void fp32_follows_the_cpu(void **state) {
    (void)state;
    for (int i = 0; i < CARD_KINDS; i++) {
        static epoch_report cpu, card;
        static const char few[] = "train.steps=50";
        cpu = curve(&cpu_device, PRECISION_FP32, card_kinds[i], few);
        card = curve(card_device(), PRECISION_FP32, card_kinds[i], few);
        check_near("fp32 beside the CPU's", card_kinds[i], &card, &cpu);
    }
}

int main(void) {
    struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_follows_fp32),
        cmocka_unit_test(mlp_follows_fp32),
        cmocka_unit_test(transformer_follows_fp32),
        cmocka_unit_test(nbeats_follows_fp32),
        cmocka_unit_test(products_of_any_make_follow_fp32),
        cmocka_unit_test(fp32_follows_the_cpu),
    };
    return parts_run("card, losses", tests, sizeof tests / sizeof *tests);
}

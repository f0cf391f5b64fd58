// Exact on the card: two runs of one job leave the same behind, and so do a replayed graph and launches one by one, and
// steps played together and single ones. Built as gpu_test_card_equal only.
//
// Compared: weights, moments, everything that lives on the device across steps, and losses, after an epoch with
// dropout; every kind of model in every precision, each run on a queue and an executor of its own. Once more, in bf16
// and fp32, with products by our own kernels alone and by the library from small sizes on.
#include "parts.h"
#include "run/same.h"
#include "train/card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_same(const char *what, const card_run *once, const epoch_report *want) {
    static epoch_report is;
    card_run again = *once;
    again.to = "again";
    assert_true(card_train(&again, &is));
    print_message("%s, %s in %s\n", what, once->job->name, precision_name(once->precision));
    card_same(what, once, want, &is);
    same_files("once", "again");
}

static void check_equal(precision p, const card_job *j, const char *more) {
    static epoch_report r;
    card_run once = {.device = card_device(), .precision = p, .job = j, .more = more, .to = "once"};
    assert_true(card_train(&once, &r));
    check_same("two runs", &once, &r);
    once.card.debug = true;
    check_same("graph and eager", &once, &r);
}

static void equal_runs_give_equal_bits(void **state) {
    (void)state;
    for (int k = 0; k < CARD_PRECISIONS; k++)
        for (int i = 0; card_computes(card_precisions[k]) && i < CARD_JOBS; i++)
            check_equal(card_precisions[k], &card_jobs[i], "");
}

// 128 rows are few enough for the rule to leave layers to our own kernels that the library takes where it is asked for.
#define FEW "train.batch_size=128 train.steps=60 "

static const char *const makes[] = {FEW "gpu_optimization.products=own", FEW "gpu_optimization.products=library"};

static void products_of_any_make_give_equal_bits(void **state) {
    static const precision each[] = {PRECISION_BF16, PRECISION_FP32};
    (void)state;
    for (int i = 0; i < CARD_KINDS; i++)
        for (int k = 0; k < 4; k++)
            if (card_computes(each[k / 2])) check_equal(each[k / 2], card_kinds[i], makes[k % 2]);
}

// Recorded together, the end of a step and the start of the next may run side by side where a single one would wait.
static void together_equals_single_steps(void **state) {
    (void)state;
    for (int k = 0; k < CARD_PRECISIONS; k++)
        for (int i = 0; card_computes(card_precisions[k]) && i < CARD_JOBS; i++) {
            rig r;
            card_rig(&r, card_device(), card_precisions[k], &card_jobs[i], "");
            print_message("%s in %s\n", card_jobs[i].name, precision_name(card_precisions[k]));
            rig_check_together(&r);
            rig_close(&r);
        }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    struct CMUnitTest tests[] = {
        TEST(equal_runs_give_equal_bits),
        TEST(products_of_any_make_give_equal_bits),
        TEST(together_equals_single_steps),
    };
    return parts_run("card, equal", tests, sizeof tests / sizeof *tests);
}

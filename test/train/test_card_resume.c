// Going on from a checkpoint on the card: where the card made it, to the bits of a run never stopped; where the CPU
// did, or the other way round, to rounding. Built as gpu_test_card_resume only.
#include "cpu/cpu.h"
#include "parts.h"
#include "run/same.h"
#include "train/card.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

// Two epochs, stopped in the middle of the first and of the second.
static void check_exact(precision p, const card_job *j) {
    static epoch_report whole, pieces;
    static const char two[] = "train.epochs=2 train.steps=auto";
    card_run run = {.device = card_device(), .precision = p, .job = j, .more = two, .to = "whole"};
    assert_true(card_train(&run, &whole));
    uint64_t each = whole.update / 2;
    run.to = "piece";
    run.stop_after = each / 3;
    assert_false(card_train(&run, &pieces));
    run.from = "piece";
    run.stop_after = each + each / 3;
    assert_false(card_train(&run, &pieces));
    run.stop_after = 0;
    assert_true(card_train(&run, &pieces));
    card_same("whole and in pieces", &run, &whole, &pieces);
    same_files("whole", "piece");
    print_message(
        "%s in %s: the same after %llu steps\n", j->name, precision_name(p), (unsigned long long)whole.update);
}

static void the_card_goes_on_to_the_same_bits(void **state) {
    (void)state;
    for (int k = 0; k < CARD_PRECISIONS; k++)
        for (int i = 0; card_computes(card_precisions[k]) && i < CARD_KINDS; i++)
            check_exact(card_precisions[k], card_kinds[i]);
}

// An fp32 product of the card is three of tf32 halves and errs by 2^-21, 8 times as much as the CPU's, and sums are in
// another order, which alone (the CPU's base kernels beside its AVX-512 ones) moves a loss by up to 4e-6 in the twenty
// steps from the checkpoint to the end: ten times both together.
static const double rounding = 3e-4;

static void check_near(const char *what, const card_job *j, const epoch_report *is, const epoch_report *want) {
    double training = fabs(is->train.loss / want->train.loss - 1),
           validation = fabs(is->validation.loss / want->validation.loss - 1);
    print_message("%s, %s: losses %.7f and %.7f in training (off by %.1e), %.7f and %.7f in validation (%.1e)\n",
        j->name, what, is->train.loss, want->train.loss, training, is->validation.loss, want->validation.loss,
        validation);
    assert_int_equal(is->update, want->update);
    if (!(training <= rounding && validation <= rounding)) fail_msg("%s, %s: beyond rounding", j->name, what);
}

// Stopped on one device, ended on the other, and once more ended where it began.
static void check_moved(const card_job *j, const device *from, const device *to, const char *what) {
    static epoch_report stays, moved, unused;
    card_run run = {
        .device = from, .job = j, .more = "train.steps=40 train.optimizer.lr=2e-4", .to = "stop", .stop_after = 20};
    assert_false(card_train(&run, &unused));
    run.from = "stop";
    run.to = NULL;
    run.stop_after = 0;
    assert_true(card_train(&run, &stays));
    run.device = to;
    assert_true(card_train(&run, &moved));
    check_near(what, j, &moved, &stays);
}

static void runs_move_to_the_card(void **state) {
    (void)state;
    for (int i = 0; i < CARD_KINDS; i++) check_moved(card_kinds[i], &cpu_device, card_device(), "CPU to card");
}

static void runs_move_to_the_cpu(void **state) {
    (void)state;
    for (int i = 0; i < CARD_KINDS; i++) check_moved(card_kinds[i], card_device(), &cpu_device, "card to CPU");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    struct CMUnitTest tests[] = {
        TEST(the_card_goes_on_to_the_same_bits),
        TEST(runs_move_to_the_card),
        TEST(runs_move_to_the_cpu),
    };
    return parts_run("card, resumed", tests, sizeof tests / sizeof *tests);
}

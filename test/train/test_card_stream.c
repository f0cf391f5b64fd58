// Batches streamed from the host to the card give the bits of data that lie there. Built as gpu_test_card_stream only.
//
// They are copied in beside the steps that read them: many small steps, in which the host runs far ahead, and batches
// large enough that a copy and a step take turns at being the slower one.
#include "parts.h"
#include "run/same.h"
#include "train/card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const card_job jobs[] = {
    {"small steps", "data.synthetic.bars=30000 train.batch_size=16 train.epochs=2 model.kind=mlp model.widths=32",
        false},
    {"small micro-batches",
        "data.synthetic.bars=30000 train.batch_size=16 train.epochs=1 model.kind=mlp model.widths=32 "
        "gpu_optimization.gradient_accumulation_steps=2",
        false},
    {"large steps", "data.synthetic.bars=60000 train.batch_size=3072 train.epochs=4 train.patience=9", false},
    {"large micro-batches",
        "data.synthetic.bars=60000 train.batch_size=1000 train.epochs=2 data.scale=standard "
        "gpu_optimization.gradient_accumulation_steps=2",
        false},
    {"transformer", "data.synthetic.bars=20000 train.batch_size=256 train.epochs=1 model.kind=transformer", false},
};

static void check_streamed(const card_job *j, precision p) {
    static epoch_report there, fed;
    card_run run = {.device = card_device(), .precision = p, .job = j, .more = "data.residency=device", .to = "there"};
    assert_true(card_train(&run, &there));
    run.more = "data.residency=host data.num_workers=6";
    run.to = "fed";
    for (int i = 0; i < 2; i++) {
        assert_true(card_train(&run, &fed));
        card_same("device and host", &run, &there, &fed);
        same_files("there", "fed");
    }
}

static void streaming_changes_no_bit(void **state) {
    static const precision modes[] = {PRECISION_FP32, PRECISION_BF16};
    (void)state;
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
        for (size_t i = 0; card_computes(modes[k]) && i < sizeof jobs / sizeof *jobs; i++)
            check_streamed(&jobs[i], modes[k]);
}

int main(void) {
    struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(streaming_changes_no_bit, support_enter, support_leave),
    };
    return parts_run("card, streamed", tests, sizeof tests / sizeof *tests);
}

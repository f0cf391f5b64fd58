// fp16 on the card: it survives an overflow, or says that it cannot. Built as gpu_test_card only. With --card it just
// says which card there is, and fails where there is none.
#include "parts.h"
#include "train/card.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void note(void *arg, const epoch_report *r) {
    *(epoch_report *)arg = *r;
}

// A scale at which every gradient overflows: it comes down by itself, and training goes on.
static void fp16_comes_down_from_an_overflow(void **state) {
    (void)state;
    err e;
    rig r;
    static epoch_report o;
    train_result result;
    static const float high[2] = {0x1p30f, 0};
    rig_open_in(&r, card_device(), 0, PRECISION_FP16,
        "data.synthetic.bars=6000 train.batch_size=64 train.epochs=2 train.optimizer.lr=2e-3");
    trainer *t = rig_trainer(&r);
    support_ok(exec_write(trainer_exec(t), r.job.seed, high, &e), &e);
    support_ok(trainer_run(t, &(watcher){.on_epoch = note, .arg = &o}, &result, &e), &e);
    print_message("%lld steps skipped, loss scale %g, training loss %.4f\n", (long long)o.skipped, (double)o.loss_scale,
        o.train.loss);
    assert_true(o.skipped >= 10 && o.skipped <= 30);
    assert_true((double)o.loss_scale == ldexp(1, 30 - (int)o.skipped));
    assert_true(isfinite(o.grad_norm) && o.train.loss < 0.95);
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
    const device *d = card_open(&e);
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
    struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_comes_down_from_an_overflow),
        cmocka_unit_test(fp16_says_when_it_cannot),
    };
    if (argc > 1 && strcmp(argv[1], "--card") == 0) return say_which_card();
    return parts_run("card", tests, sizeof tests / sizeof *tests);
}

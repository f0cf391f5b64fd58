// fp16 on the card: it survives an overflow, gives way to another precision, or says that it cannot. Built as
// gpu_test_card only. With --card it just says which card there is, and fails where there is none.
#include "graph/identity.h"
#include "parts.h"
#include "run/checkpoint.h"
#include "run/same.h"
#include "train/card.h"
#include "train/fallback.h"

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
    support_ok(support_write(t, r.job.seed, high, &e), &e);
    support_ok(trainer_run(t, &(watcher){.on_epoch = note, .arg = &o}, &result, &e), &e);
    print_message("%lld steps skipped, loss scale %g, training loss %.4f\n", (long long)o.skipped, (double)o.loss_scale,
        o.train.loss);
    assert_true(o.skipped >= 10 && o.skipped <= 30);
    assert_true((double)o.loss_scale == ldexp(1, 30 - (int)o.skipped));
    assert_true(isfinite(o.grad_norm) && o.train.loss < 0.95);
    trainer_free(t);
    rig_close(&r);
}

// A run that has no other precision to go on in.
static void take_fallback_away(rig *r) {
    job_done(r->job.fallback);
    free(r->job.fallback);
    r->job.fallback = NULL;
}

static void fp16_says_when_it_cannot(void **state) {
    (void)state;
    err e;
    rig r;
    train_result result;
    rig_open_in(&r, card_device(), 0, PRECISION_FP16, "model.kind=mlp train.batch_size=8 train.epochs=2");
    take_fallback_away(&r);
    trainer *t = rig_trainer(&r);
    float *weights = rig_weights(&r, t);
    weights[0] = NAN;
    support_ok(support_write(t, graph_slab(r.job.g, SLAB_WEIGHTS), weights, &e), &e);
    assert_false(trainer_run(t, &(watcher){.arg = NULL}, &result, &e));
    print_message("%s\n", e.text);
    assert_non_null(strstr(e.text, "bf16"));
    assert_non_null(strstr(e.text, "loss scale of 1;"));
    free(weights);
    trainer_free(t);
    rig_close(&r);
}

// Giving way

// 200 times the usual weights: the scores of three layers are in the hundred thousands, beyond fp16, whose largest
// number is 65,504, but not beyond bf16 or fp32.
enum { TIMES = 200 };

typedef struct {
    trainer *t;
    uint64_t stop_after;
    const char *path;
    epoch_report report[4];
    int epochs, changes;
    change_report change;
} fallen;

static void save_fallen(const fallen *f) {
    err e;
    support_ok(trainer_checkpoint(f->t, f->path, NULL, 0, &e), &e);
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    const fallen *f = arg;
    uint64_t update;
    int64_t at, of;
    (void)epoch;
    trainer_stands(f->t, &update, &at, &of);
    if (!f->stop_after || update < f->stop_after || done >= total) return true;
    save_fallen(f);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    fallen *f = arg;
    f->report[f->epochs++ % 4] = *r;
    if (r->last) save_fallen(f);
}

static bool on_change(void *arg, const change_report *r, err *e) {
    fallen *f = arg;
    (void)e;
    f->change = *r;
    f->changes++;
    return true;
}

static void put_large_weights(rig *r, trainer *t) {
    err e;
    float *weights = rig_weights(r, t);
    for (int64_t i = 0; i < graph_slab_elements(r->job.g); i++) weights[i] *= TIMES;
    support_ok(support_write(t, graph_slab(r->job.g, SLAB_WEIGHTS), weights, &e), &e);
    free(weights);
}

// Three epochs of 252 steps from weights that overflow, or what is left of them; whether they came to their end.
static bool fall(fallen *f, const char *from, uint64_t stop_after, const char *to) {
    err e;
    rig r;
    train_result result;
    rig_open_in(&r, card_device(), 0, PRECISION_FP16,
        "data.synthetic.bars=6000 train.batch_size=16 train.epochs=3 train.patience=9 data.split.embargo=0 "
        "model.kind=mlp model.widths=256-256");
    precision other = fallback_of(r.device->computes(r.queue, PRECISION_BF16));
    job_add_fallback(&r.job, r.data, &r.split, &r.settings, &r.model, r.window, r.scaler, other);
    *f = (fallen){.t = rig_trainer(&r), .stop_after = stop_after, .path = to};
    safetensors *file = from ? checkpoint_open(from, &e) : NULL;
    if (from) support_ok(file && trainer_restore(f->t, file, from, &e), &e);
    if (!from) put_large_weights(&r, f->t);
    safetensors_close(file);
    watcher w = {.on_step = on_step, .on_epoch = on_epoch, .on_change = on_change, .arg = f};
    support_ok(trainer_run(f->t, &w, &result, &e), &e);
    trainer_free(f->t);
    rig_close(&r);
    return !result.interrupted;
}

static void fp16_gives_way(void **state) {
    (void)state;
    static fallen whole, piece;
    assert_true(fall(&whole, NULL, 0, "whole"));
    assert_int_equal(whole.changes, 1);
    assert_int_equal(whole.epochs, 3);
    print_message("%s to %s after %llu steps, %lld of them skipped\n", precision_name(whole.change.from),
        precision_name(whole.change.to), (unsigned long long)whole.change.update, (long long)whole.change.skipped);
    assert_true(whole.change.from == PRECISION_FP16 && whole.change.in_a_row >= FALLBACK_OVERFLOWS);
    for (int i = 0; i < 3; i++) {
        const epoch_report *r = &whole.report[i];
        print_message("epoch %d in %s: loss %g, validation %g, %lld steps skipped, loss scale %g\n", i + 1,
            precision_name(r->precision), r->train.loss, r->validation.loss, (long long)r->skipped,
            (double)r->loss_scale);
        assert_true(r->precision == whole.change.to && isfinite(r->validation.loss) && r->loss_scale == 1.0f);
        assert_true(i == 0 || isfinite(r->train.loss));
        assert_int_equal(r->skipped, whole.change.skipped);
    }
    assert_true(whole.report[2].train.loss < whole.report[1].train.loss);
    assert_false(fall(&piece, NULL, 50, "piece"));     // still in fp16
    assert_false(fall(&piece, "piece", 300, "piece")); // in the second epoch
    assert_int_equal(piece.changes, 1);
    assert_memory_equal(&piece.change, &whole.change, sizeof whole.change);
    assert_true(fall(&piece, "piece", 0, "piece"));
    assert_int_equal(piece.changes, 0);
    same_files("whole", "piece");
}

static int say_which_card(void) {
    err e;
    char text[IDENTITY_ROOM];
    device_identity is;
    const device *d = card_open(&e);
    queue *q = d ? d->open(&(queue_options){0}, &e) : NULL;
    if (!q) {
        fprintf(stderr, "no card: %s\n", e.text);
        return 1;
    }
    d->identify(q, &is);
    identity_text(&is, text, sizeof text);
    printf("%s\n", text);
    d->close(q);
    return 0;
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_comes_down_from_an_overflow),
        cmocka_unit_test_setup_teardown(fp16_gives_way, support_enter, support_leave),
        cmocka_unit_test(fp16_says_when_it_cannot),
    };
    if (argc > 1 && strcmp(argv[1], "--card") == 0) return say_which_card();
    return parts_run("card", tests, sizeof tests / sizeof *tests);
}

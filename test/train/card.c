#include "train/card.h"

#include "graph/plugin.h"
#include "run/checkpoint.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const precision card_precisions[CARD_PRECISIONS] = {PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16};

#define ALL    "data.split.embargo=0 train.epochs=1 train.patience=9 "
#define SMALL  ALL "data.synthetic.bars=7500 train.batch_size=48 "
#define LARGE  ALL "data.synthetic.bars=74000 data.windows.fast=48 train.batch_size=512 "
#define SERIES ALL "data.windows.series=64 train.batch_size=512 model.kind=nbeats model.width=512 "

// Columns of the large mlp: 48 * 15 + 20 * 8 + 64 = 944, a multiple of 8. Rows of the transformer: 64 * 48.
const card_job card_jobs[CARD_JOBS] = {
    {"lstm", SMALL "model.kind=lstm", false},
    {"lstm of two layers",
        SMALL "model.kind=lstm model.layers=2 model.hidden.fast=40 model.hidden.slow=24 data.windows.fast=21", false},
    {"lstm, accumulated",
        SMALL "model.kind=lstm model.hidden.fast=72 model.hidden.slow=7 train.batch_size=16 "
              "gpu_optimization.gradient_accumulation_steps=3",
        false},
    {"lstm of 136 units", SMALL "model.kind=lstm model.hidden.fast=136 data.windows.fast=16", false},
    {"mlp", SMALL "model.kind=mlp train.class_weights=balanced train.label_smoothing=0.1", false},
    {"mlp of odd widths", SMALL "model.kind=mlp model.widths=100-37 model.activation=gelu train.optimizer.kind=sgd",
        false},
    {"mlp, large", LARGE "model.kind=mlp model.widths=512-512", false},
    {"transformer, large",
        ALL "data.synthetic.bars=9900 data.windows.fast=48 train.batch_size=64 model.kind=transformer model.heads=4 "
            "model.hidden.slow=64 model.layers=1 model.dropout=0.1",
        false},
    {"nbeats of trend and season",
        SERIES "model.stacks=trend,seasonality model.blocks=2 model.layers=2 train.batch_size=128 model.width=72 "
               "train.steps=110",
        true},
    {"nbeats, large", SERIES "model.blocks=2 model.layers=3", true},
};

const card_job *const card_kinds[CARD_KINDS] = {&card_jobs[0], &card_jobs[6], &card_jobs[7], &card_jobs[9]};

const device *card_open(err *e) {
    static const device *card;
    bool found;
    if (!card) card = plugin_open("tradewind-cuda.so", &found, e);
    return card;
}

const device *card_device(void) {
    err e;
    const device *d = card_open(&e);
    support_ok(d != NULL, &e);
    return d;
}

bool card_computes(precision p) {
    err e;
    const device *d = card_device();
    queue *q = d->open(&(queue_options){0}, &e);
    support_ok(q != NULL, &e);
    bool yes = d->computes(q, p);
    d->close(q);
    if (!yes) print_message("SKIPPED: %s, which these kernels do not compute\n", precision_name(p));
    return yes;
}

// Series of waves under noise, which no model foresees: losses stay well above what rounding adds to them.
static dataset *waves_new(void) {
    enum { COUNT = 64, LENGTH = 1200, HORIZON = 8, EACH = LENGTH - HORIZON - 1, SAMPLES = COUNT * EACH };
    err e = {0};
    size_t at = 0, bytes = dataset_room(COUNT * LENGTH, sizeof(float)) + 2 * dataset_room(SAMPLES, sizeof(int32_t)) +
                           dataset_room((int64_t)SAMPLES * HORIZON, sizeof(float));
    dataset *d = dataset_new(bytes, &e);
    support_ok(d != NULL, &e);
    float *value = dataset_take(d, &at, COUNT * LENGTH, sizeof *value);
    int32_t *row = dataset_take(d, &at, SAMPLES, sizeof *row), *first = dataset_take(d, &at, SAMPLES, sizeof *first);
    float *target = dataset_take(d, &at, (int64_t)SAMPLES * HORIZON, sizeof *target);
    dice noise = {.seed = 7};
    for (int i = 0; i < COUNT * LENGTH; i++) {
        int s = i / LENGTH, t = i % LENGTH;
        value[i] = (float)(1 + s) * (4 + 2 * sinf((float)t * 0.5f + (float)s) + dice_unit(&noise));
    }
    for (int i = 0; i < SAMPLES; i++) {
        first[i] = i % COUNT * LENGTH;
        row[i] = first[i] + 1 + i / COUNT;
        memcpy(target + (size_t)i * HORIZON, value + row[i] + 1, HORIZON * sizeof *target);
    }
    d->name = "waves";
    d->samples = SAMPLES;
    d->streams = 1;
    d->stream[0] = (stream){
        .name = "series", .series = table_of(COLUMN_F32, COUNT * LENGTH, 1, value), .row = row, .first = first};
    d->target = target;
    d->target_width = d->horizon = HORIZON;
    return d;
}

void card_rig(rig *r, const device *d, precision p, const card_job *j, const char *more) {
    char keys[1024];
    snprintf(keys, sizeof keys, "%s %s", j->keys, more);
    rig_open_on(r, j->waves ? waves_new() : NULL, d, 0, p, keys);
}

// Running

typedef struct {
    trainer *t;
    const card_run *run;
    epoch_report *last;
} seen;

static void save(const seen *s) {
    err e;
    if (s->run->to) support_ok(trainer_checkpoint(s->t, s->run->to, NULL, 0, &e), &e);
}

static bool on_step(void *arg, int64_t epoch, int64_t done, int64_t total) {
    const seen *s = arg;
    uint64_t update;
    int64_t of, at;
    (void)epoch;
    trainer_stands(s->t, &update, &of, &at);
    if (!s->run->stop_after || update < s->run->stop_after || done >= total) return true;
    save(s);
    return false;
}

static void on_epoch(void *arg, const epoch_report *r) {
    const seen *s = arg;
    *s->last = *r;
    if (r->last) save(s);
}

bool card_train(const card_run *c, epoch_report *last) {
    err e;
    rig r;
    train_result result;
    card_rig(&r, c->device, c->precision, c->job, c->more ? c->more : "");
    r.device->close(r.queue);
    r.queue = r.device->open(&(queue_options){.card = c->card}, &e);
    support_ok(r.queue != NULL, &e);
    seen s = {.t = rig_trainer(&r), .run = c, .last = last};
    if (c->from) {
        safetensors *from = checkpoint_open(c->from, &e);
        support_ok(from && trainer_restore(s.t, from, c->from, &e), &e);
        safetensors_close(from);
    }
    support_ok(trainer_run(s.t, &(watcher){.on_step = on_step, .on_epoch = on_epoch, .arg = &s}, &result, &e), &e);
    trainer_free(s.t);
    rig_close(&r);
    return !result.interrupted;
}

void card_same(const char *what, const card_run *c, const epoch_report *a, const epoch_report *b) {
    bool same = a->train.loss == b->train.loss && a->validation.loss == b->validation.loss &&
                a->grad_norm == b->grad_norm && a->skipped == b->skipped && a->loss_scale == b->loss_scale &&
                a->epoch == b->epoch && a->update == b->update;
    if (!same)
        fail_msg("%s, %s in %s: training losses %.9g and %.9g", what, c->job->name, precision_name(c->precision),
            a->train.loss, b->train.loss);
    if (!isfinite(a->train.loss) || !isfinite(a->validation.loss))
        fail_msg("%s in %s: loss is not finite", c->job->name, precision_name(c->precision));
}

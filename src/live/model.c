#include "live/model.h"

#include "run/run.h"
#include "task/ensemble.h"
#include "task/members.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 128 };

void live_model_close(live_model *m) {
    for (int k = 0; m->member && k < m->members; k++) predictor_free(m->member[k]);
    if (m->members) trained_close(&m->trained);
    free(m->member);
    free(m->each);
    *m = (live_model){0};
}

static bool open_trained(live_model *m, const model_options *o, err *e) {
    static const char *const one_row[] = {"train.batch_size=1", "gpu_optimization.gradient_accumulation_steps=1",
        "gpu_optimization.dynamic_batch_sizing=false"};
    const char *word[WORDS_MOST];
    int words = 0, own = (int)(sizeof one_row / sizeof *one_row);
    CHECK(o->run.override_count + own <= WORDS_MOST, "%d words", o->run.override_count);
    for (int i = 0; i < o->run.override_count; i++) word[words++] = o->run.overrides[i];
    for (int i = 0; i < own; i++) word[words++] = one_row[i];
    const dataset *d = board_data(o->board);
    const split_part all = part_of((span){0, d->samples});
    const split parts = {.train = all, .validation = all, .test = all};
    trained_options as = {.run = o->run.run,
        .overrides = word,
        .override_count = words,
        .part = "all",
        .dataset = board_data(o->board),
        .parts = &parts,
        .devices = o->run.devices,
        .version = o->run.version};
    return trained_open(&m->trained, &as, e);
}

static bool open_member(live_model *m, int k, err *e) {
    char *dir = members_dir(m->trained.weights, k + 1), *weights = run_path(dir, "best.safetensors");
    m->member[k] = task_predictor(&m->trained.task, e);
    bool ok = m->member[k] && predictor_load(m->member[k], weights, e);
    free(weights);
    free(dir);
    return ok;
}

bool live_model_open(live_model *m, const model_options *o, err *e) {
    *m = (live_model){.board = o->board};
    if (!open_trained(m, o, e)) return false;
    int count = m->trained.members;
    m->members = count ? count : 1;
    m->width = inference_width(&m->trained.task.job);
    m->each = calloc((size_t)m->members * (size_t)m->width, sizeof *m->each);
    if (count) m->member = calloc((size_t)count, sizeof *m->member);
    bool ok = (m->each && (m->member || !count)) || err_run(e, "no memory for %d members", m->members);
    for (int k = 0; ok && k < count; k++) ok = open_member(m, k, e);
    if (!ok) live_model_close(m);
    return ok;
}

void live_rescale(const task *t, board *b, int series) {
    if (t->scaler && t->scaler->series > 1) scaler_follow(t->scaler, board_data(b), t->data, series);
}

bool live_model_answer(live_model *m, int series, float *answer, err *e) {
    const split_part one = part_of((span){series, 1});
    const float *each[MEMBERS_MOST];
    live_rescale(&m->trained.task, m->board, series);
    if (!m->member) return inference_predict(predictor_inference(m->trained.predictor), &one, answer, e);
    for (int k = 0; k < m->members; k++) {
        float *to = m->each + k * m->width;
        each[k] = to;
        if (!inference_predict(predictor_inference(m->member[k]), &one, to, e)) return false;
    }
    (m->trained.task.job.forecasts ? ensemble_median : ensemble_mean)(each, m->members, m->width, answer);
    return true;
}

void live_outside(const scaler *s, const board *b, int series, double by, int64_t *outside, int64_t *of) {
    *outside = *of = 0;
    if (!s) return;
    for (int i = 0; i < s->streams; i++) {
        const float *row = board_row(b, series, i);
        int64_t own = s->series > 1 ? series * s->width[i] : 0;
        for (int64_t c = 0; c < s->width[i]; c++) {
            double z = ((double)row[c] - (double)s->mean[i][own + c]) / (double)s->std[i][own + c];
            *outside += !(fabs(z) <= by);
        }
        *of += s->width[i];
    }
}

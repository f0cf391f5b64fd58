#include "task/answers.h"

#include "data/npz.h"
#include "task/market.h"
#include "task/output.h"
#include "task/rule_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool take_memory(answers *a, err *e) {
    size_t n = (size_t)a->samples.count;
    bool classes = !a->t->task.job.forecasts;
    if (classes) a->choice = malloc(n * sizeof *a->choice);
    a->sample = malloc(n * sizeof *a->sample);
    a->name = malloc(n * sizeof *a->name);
    bool bars = a->data->streams && a->data->stream[0].bars.count;
    if (bars) a->bar = malloc(n * sizeof *a->bar);
    return ((a->choice || !classes) && a->sample && a->name && (a->bar || !bars)) ||
           err_run(e, "out of memory for %zu samples", n);
}

static void choose(answers *a) {
    for (int64_t i = 0; i < a->samples.count; i++) {
        const float *p = a->answer + i * a->width;
        a->choice[i] = 0;
        for (int k = 1; k < a->width; k++)
            if (p[k] > p[a->choice[i]]) a->choice[i] = k;
    }
}

static void name_samples(answers *a) {
    for (int64_t i = 0; i < a->samples.count; i++) {
        a->sample[i] = part_sample(&a->samples, i);
        if (a->bar) a->bar[i] = dataset_bar_of(a->data, a->sample[i]);
        if (a->data->panel) a->name[i] = a->data->panel_names[dataset_panel_of(a->data, a->sample[i])];
    }
}

// The side that the rule asks for at each bar.
static bool find_signals(answers *a, const rule_record *r, const build_options *label, err *e) {
    a->signal = malloc((size_t)a->samples.count * sizeof *a->signal);
    if (!a->signal) return err_run(e, "out of memory for %lld signals", (long long)a->samples.count);
    for (int64_t i = 0; i < a->samples.count; i++) {
        double close = dataset_bar(&a->data->stream[0].bars, a->bar[i]).close;
        bool is = !a->data->panel || !r->symbol[0] || strcmp(r->symbol, a->name[i]) == 0;
        double score = market_answer(a->t, label, a->answer + i * a->width, close);
        a->signal[i] = is ? (float)decide_side(&r->rule, score) : NAN;
    }
    return true;
}

// Signals of data that were made of bars, where the description or the run's directory has a rule.
static bool add_signals(answers *a, err *e) {
    build_options label = build_defaults;
    rule_record rule;
    bool there;
    if (!a->bar || a->future || !build_label_read(json_object_get(a->data->about, "label"), &label)) return true;
    if (!rule_of(a->t, &rule, &there, e)) return false;
    return !there || find_signals(a, &rule, &label, e);
}

bool answers_make(answers *a, trained *t, err *e) {
    *a = (answers){.t = t,
        .data = t->task.data,
        .samples = t->samples,
        .future = strcmp(t->part, "future") == 0,
        .latest = strcmp(t->part, "latest") == 0,
        .width = inference_width(&t->task.job)};
    if (!take_memory(a, e) || !(a->answer = task_predict(t, e))) return false;
    if (a->choice) choose(a);
    name_samples(a);
    return add_signals(a, e);
}

void answers_done(answers *a) {
    free(a->answer);
    free(a->choice);
    free(a->sample);
    free(a->bar);
    free(a->name);
    free(a->signal);
}

bool answers_known(const answers *a, int64_t i) {
    return !a->future && (!a->data->known || a->data->known[a->sample[i]]);
}

bool answers_trained_on(const answers *a, int64_t i) {
    const data_notes *n = &a->t->notes;
    return n->trained_on > 0 && data_notes_in_training(n, a->data->time[a->sample[i]]);
}

// The file

static bool write_times(npz_writer *w, const answers *a, err *e) {
    int64_t n = a->samples.count, *time = malloc((size_t)n * sizeof *time);
    if (!time) return err_run(e, "out of memory for %lld times", (long long)n);
    for (int64_t i = 0; i < n; i++) time[i] = a->data->time[a->sample[i]];
    bool ok = npz_writer_array(w, "time", NPY_I64, 1, &n, time, e);
    free(time);
    return ok;
}

// Labels, -1 where they are not known yet.
static bool write_labels(npz_writer *w, const answers *a, err *e) {
    int64_t n = a->samples.count;
    int32_t *label = malloc((size_t)n * sizeof *label);
    if (!label) return err_run(e, "out of memory for %lld labels", (long long)n);
    for (int64_t i = 0; i < n; i++) label[i] = answers_known(a, i) ? a->data->label[a->sample[i]] : -1;
    bool ok = npz_writer_array(w, "label", NPY_I32, 1, &n, label, e);
    free(label);
    return ok;
}

// Targets, NaN where they are not known yet.
static bool write_targets(npz_writer *w, const answers *a, err *e) {
    int64_t n = a->samples.count, H = a->data->target_width, dim[2] = {n, H};
    float *target = malloc((size_t)(n * H) * sizeof *target);
    if (!target) return err_run(e, "out of memory for %lld targets", (long long)(n * H));
    for (int64_t i = 0; i < n * H; i++)
        target[i] = answers_known(a, i / H) ? a->data->target[a->sample[i / H] * H + i % H] : NAN;
    bool ok = npz_writer_array(w, "target", NPY_F32, 2, dim, target, e);
    free(target);
    return ok;
}

// Opens, closes and closing prices of the bars.
static bool write_bars(npz_writer *w, const answers *a, err *e) {
    int64_t n = a->samples.count;
    int64_t *time = malloc((size_t)(2 * n) * sizeof *time);
    double *close = malloc((size_t)n * sizeof *close);
    bool ok = (time && close) || err_run(e, "out of memory for %lld bars", (long long)n);
    for (int64_t i = 0; ok && i < n; i++) {
        bar b = dataset_bar(&a->data->stream[0].bars, a->bar[i]);
        time[i] = b.time;
        time[n + i] = b.end;
        close[i] = b.close;
    }
    ok = ok && npz_writer_array(w, "open_time", NPY_I64, 1, &n, time, e) &&
         npz_writer_array(w, "close_time", NPY_I64, 1, &n, time + n, e) &&
         npz_writer_array(w, "close", NPY_F64, 1, &n, close, e);
    free(time);
    free(close);
    return ok;
}

static bool write_classes(npz_writer *w, const answers *a, err *e) {
    const dataset *d = a->data;
    int64_t dim[2] = {a->samples.count, a->width};
    bool ok = npz_writer_array(w, "probability", NPY_F32, 2, dim, a->answer, e) &&
              npz_writer_array(w, "prediction", NPY_I32, 1, dim, a->choice, e);
    if (ok && d->label) ok = write_labels(w, a, e);
    return ok && (!d->class_names || npz_writer_text(w, "classes", d->class_names, d->classes, e));
}

// [samples, horizon], or with quantiles [samples, quantiles, horizon].
static bool write_forecasts(npz_writer *w, const answers *a, err *e) {
    const dataset *d = a->data;
    const quantile_settings *q = &a->t->task.settings.quantiles;
    int64_t H = d->target_width, Q = a->width / H, flat[2] = {a->samples.count, H}, deep[3] = {a->samples.count, Q, H};
    bool ok = npz_writer_array(w, "forecast", NPY_F32, Q > 1 ? 3 : 2, Q > 1 ? deep : flat, a->answer, e);
    if (ok && Q > 1) ok = npz_writer_array(w, "quantiles", NPY_F32, 1, &Q, q->level, e);
    if (ok && !a->future) ok = write_targets(w, a, e);
    return ok;
}

bool answers_write_npz(const answers *a, const char *path, err *e) {
    const dataset *d = a->data;
    int64_t n = a->samples.count;
    npz_writer w;
    bool ok = npz_writer_open(&w, path, e) && npz_writer_text(&w, output_mark, (const char *const[]){"1"}, 1, e);
    ok = ok && (a->t->task.job.forecasts ? write_forecasts(&w, a, e) : write_classes(&w, a, e));
    if (ok && !a->future && !a->latest) ok = npz_writer_array(&w, "sample", NPY_I64, 1, &n, a->sample, e);
    if (ok && a->bar) ok = write_bars(&w, a, e);
    if (ok && d->time && !a->bar) ok = write_times(&w, a, e);
    if (ok && d->panel) ok = npz_writer_text(&w, a->bar ? "symbol" : "series", a->name, n, e);
    if (ok && a->signal) ok = npz_writer_array(&w, "signal", NPY_F32, 1, &n, a->signal, e);
    ok = ok && npz_writer_commit(&w, e);
    npz_writer_abandon(&w);
    return ok;
}

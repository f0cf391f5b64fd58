#include "task/importance.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Rounds of the permutation from here on are no epoch's.
static const uint32_t first_round = 1u << 31;

// A column of a stream, or of the vector (stream -1).
typedef struct {
    int stream;
    int64_t column;
} place;

static const table *table_at(const dataset *d, int stream) {
    return stream < 0 ? &d->vector : &d->stream[stream].series;
}

// Rows

typedef struct {
    int64_t count, *row;
} rows;

// Rows that windows of the part see, each once: +1 where a window begins, -1 behind its end, and sums of these.
static void see_rows(const trained *t, int i, int32_t *windows) {
    const stream *s = &t->task.data->stream[i];
    for (int64_t k = 0; k < t->samples.count; k++) {
        int64_t sample = part_sample(&t->samples, k), last = s->row[sample], from = last - t->task.window[i] + 1;
        windows[from > s->first[sample] ? from : s->first[sample]]++;
        windows[last + 1]--;
    }
}

static bool list_rows(const trained *t, int stream, rows *r, err *e) {
    int64_t all = table_at(t->task.data, stream)->rows, open = 0;
    int32_t *windows = calloc((size_t)all + 1, sizeof *windows);
    *r = (rows){.row = malloc(((size_t)all + 1) * sizeof *r->row)};
    bool ok = (windows && r->row) || err_run(e, "out of memory for %lld rows", (long long)all);
    if (ok && stream >= 0) see_rows(t, stream, windows);
    for (int64_t i = 0; ok && stream < 0 && i < t->samples.count; i++) {
        windows[part_sample(&t->samples, i)]++;
        windows[part_sample(&t->samples, i) + 1]--;
    }
    for (int64_t i = 0; ok && i < all; i++) {
        open += windows[i];
        if (open > 0) r->row[r->count++] = i;
    }
    free(windows);
    if (!ok) free(r->row);
    return ok;
}

// The dataset with one column of these rows in another order; NULL where memory is short.
static dataset *permuted(const trained *t, place at, const rows *r, uint32_t round, err *e) {
    const table *from = table_at(t->task.data, at.stream);
    int p = 0;
    int64_t column = at.column;
    for (; column >= from->part[p].width; p++) column -= from->part[p].width;
    const table_part *part = &from->part[p];
    size_t bytes = column_bytes(part->type), at_byte = 0;
    int64_t values = from->rows * part->width;
    dataset *view = dataset_view(t->task.data, false, dataset_room(values, bytes), e);
    if (!view) return NULL;
    char *copy = dataset_take(view, &at_byte, values, bytes);
    memcpy(copy, part->data, (size_t)values * bytes);
    for (int64_t i = 0; i < r->count; i++) {
        int64_t other = (int64_t)rng_permute(t->task.settings.seed, round, (uint64_t)i, (uint64_t)r->count);
        memcpy(copy + (size_t)(r->row[i] * part->width + column) * bytes,
            (const char *)part->data + (size_t)(r->row[other] * part->width + column) * bytes, bytes);
    }
    table *to = at.stream < 0 ? &view->vector : &view->stream[at.stream].series;
    to->part[p].data = copy;
    return view;
}

// Scores

static const metric *metric_of(const trained *t) {
    return metric_usual(settings_task(&t->task.settings, t->task.data));
}

static double value_of(const trained *t, const score *s) {
    unsigned is = settings_task(&t->task.settings, t->task.data);
    return is == METRIC_CLASSES ? s->mcc : is == METRIC_SERIES ? s->smape : s->mae;
}

// The score of the weights on other data of the same shape, by a predictor of their own.
static bool score_on(const trained *t, dataset *data, score *s, err *e) {
    task of = t->task;
    job j = {0};
    of.data = data;
    task_job(&of, &j, t->task.job.host ? RESIDENCY_HOST : RESIDENCY_DEVICE, t->task.precision);
    job_split(&j, &t->task.settings);
    predictor_place at = {.device = of.device, .queue = of.queue};
    predictor *p = predictor_new(&at, &j, &t->task.settings, e);
    bool ok = p && predictor_load(p, t->weights, e) && inference_score(predictor_inference(p), &t->samples, s, e);
    predictor_free(p);
    job_done(&j);
    return ok;
}

static json_t *row_json(const trained *t, place at, double drop) {
    const table *from = table_at(t->task.data, at.stream);
    char number[32];
    snprintf(number, sizeof number, "column %lld", (long long)at.column + 1);
    return json_pack("{s:s, s:s, s:s, s:o}", "stream", at.stream < 0 ? "vector" : t->task.data->stream[at.stream].name,
        "column", from->columns ? from->columns[at.column] : number, "metric", metric_of(t)->name, "drop",
        json_number(drop));
}

// All columns

static int columns_of(const dataset *d) {
    int64_t n = d->vector.width;
    for (int i = 0; i < d->streams; i++) n += d->stream[i].series.width;
    return (int)n;
}

typedef struct {
    trained *t;
    const importance_listener *listener;
    double base;
    json_t *all;
    score *score; // too large for a stack
} work;

static bool measure_column(work *w, place at, const rows *r, err *e) {
    int n = (int)json_array_size(w->all);
    dataset *view = permuted(w->t, at, r, first_round + (uint32_t)n, e);
    if (!view) return false;
    bool ok = score_on(w->t, view, w->score, e);
    double value = value_of(w->t, w->score), drop = metric_of(w->t)->higher ? w->base - value : value - w->base;
    if (ok) json_array_append_new(w->all, row_json(w->t, at, drop));
    if (ok && w->listener->done) w->listener->done(w->listener->arg, n + 1, columns_of(w->t->task.data));
    dataset_free(view);
    return ok;
}

static bool measure_table(work *w, int stream, err *e) {
    const table *from = table_at(w->t->task.data, stream);
    rows r;
    if (!from->width) return true;
    if (!list_rows(w->t, stream, &r, e)) return false;
    bool ok = true;
    for (int64_t c = 0; ok && c < from->width; c++) ok = measure_column(w, (place){stream, c}, &r, e);
    free(r.row);
    return ok;
}

json_t *task_importance(trained *t, const importance_listener *l, err *e) {
    work w = {.t = t, .listener = l, .all = json_array(), .score = calloc(1, sizeof *w.score)};
    NEED(w.score, "out of memory for a score");
    bool ok = !t->members ||
              err_input(e, "%s: is an ensemble, whose members have an importance each; name one of them", t->weights);
    ok = ok && inference_score(predictor_inference(t->predictor), &t->samples, w.score, e);
    w.base = value_of(t, w.score);
    if (ok) { // two predictors may be more than the limit
        predictor_free(t->predictor);
        t->predictor = NULL;
    }
    for (int i = 0; ok && i < t->task.data->streams; i++) ok = measure_table(&w, i, e);
    ok = ok && measure_table(&w, -1, e);
    free(w.score);
    if (ok) return w.all;
    json_decref(w.all);
    return NULL;
}

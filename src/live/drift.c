#include "live/drift.h"

#include "data/volatility.h"
#include "train/metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 10 };

static const double worse_from = 3;

bool drift_is_worse(const drift *d) {
    return d->apart >= worse_from;
}

bool drift_run(journal *j, char **run, err *e) {
    return journal_word(j, "run", run, e);
}

static drift_scores unknown(void) {
    drift_scores s = {.log_loss = NAN, .accuracy = NAN, .mcc = NAN, .calibration = NAN, .mae = NAN};
    for (int k = 0; k < DRIFT_CLASSES_MOST; k++) s.share[k] = NAN;
    return s;
}

// Scores of a run on validation

// The mean difference of probability and share, from an evaluation's bins.
static double calibration_of(json_t *classes) {
    double sum = 0, samples = 0;
    size_t c, b;
    json_t *class, *bin;
    json_array_foreach(classes, c, class) json_array_foreach(json_object_get(class, "bins"), b, bin) {
        double count = results_number(json_object_get(bin, "count"));
        double mean = results_number(json_object_get(bin, "mean"));
        double share = results_number(json_object_get(bin, "share"));
        if (!(count > 0) || isnan(mean) || isnan(share)) continue;
        sum += count * fabs(mean - share);
        samples += count;
    }
    return samples > 0 ? sum / samples : NAN;
}

static void shares_of(json_t *confusion, drift_scores *s) {
    size_t rows = json_array_size(confusion);
    double all = 0;
    if (!rows || rows > DRIFT_CLASSES_MOST) return;
    memset(s->share, 0, sizeof s->share);
    for (size_t t = 0; t < rows; t++)
        for (size_t p = 0; p < rows; p++) {
            double n = results_number(json_array_get(json_array_get(confusion, t), p));
            s->share[p] += n;
            all += n;
        }
    for (size_t p = 0; p < rows; p++) s->share[p] /= all;
}

static double score_of(json_t *part, const char *metric) {
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(part, "scores"), i, row) {
        const char *name = json_string_value(json_object_get(row, "metric"));
        if (name && strcmp(name, metric) == 0) return results_number(json_object_get(row, "score"));
    }
    return NAN;
}

bool drift_reference(const char *run, drift_scores *s, err *e) {
    json_t *doc;
    *s = unknown();
    if (!results_read(run, RESULTS_EVALUATION, &doc, e)) return false;
    json_t *part = doc ? results_get(doc, "parts.validation") : NULL;
    if (part) {
        s->samples = (int64_t)fmax(0, results_number(json_object_get(part, "samples")));
        s->log_loss = score_of(part, "log_loss");
        s->accuracy = score_of(part, "accuracy");
        s->mcc = score_of(part, "mcc");
        s->mae = score_of(part, "mae");
        s->calibration = calibration_of(json_object_get(part, "calibration"));
        shares_of(json_object_get(part, "confusion"), s);
    }
    json_decref(doc);
    return true;
}

// Labels of the bars

// Bars with what they turned out to be.
typedef struct {
    bar *bar;
    int64_t count;
    int32_t *label, *end;
    float *target; // [count, horizon] of forecasts
} judged;

static void judged_done(judged *g) {
    free(g->bar);
    free(g->label);
    free(g->end);
    free(g->target);
}

static double *measure(const judged *g, int64_t bars, err *e) {
    volatility *v = volatility_new(bars, e);
    double *all = v ? malloc((size_t)g->count * sizeof *all) : NULL;
    for (int64_t i = 0; all && i < g->count; i++) all[i] = volatility_push(v, &g->bar[i]);
    volatility_free(v);
    if (v && !all) err_run(e, "no memory for %lld bars", (long long)g->count);
    return all;
}

static bool judge(judged *g, const build_options *o, err *e) {
    size_t n = (size_t)g->count, width = o->label == BUILD_FORECAST ? (size_t)o->horizon : 0;
    int64_t bars = build_volatility_bars(o);
    double *volatility = bars ? measure(g, bars, e) : NULL;
    if (bars && !volatility) return false;
    g->label = calloc(n + 1, sizeof *g->label);
    g->end = calloc(n + 1, sizeof *g->end);
    g->target = width ? calloc(n, width * sizeof *g->target) : NULL;
    NEED(g->label && g->end && (g->target || !width || !n), "no memory for %lld bars", (long long)g->count);
    bool ok = o->label == BUILD_DIRECTION
                  ? label_direction(g->bar, volatility, g->count, &o->direction, g->label, g->end, e)
              : o->label == BUILD_BARRIER
                  ? label_barrier(g->bar, volatility, g->count, &o->barrier, g->label, g->end, NULL, e)
                  : label_forecast(g->bar, g->count, o->horizon, o->value, g->target, g->end, e);
    if (ok && o->to_three) label_to_three(g->label, g->count);
    free(volatility);
    return ok;
}

// Scores

typedef struct {
    int64_t count, right;
    double sum;
} bin;

typedef struct {
    int classes;
    int64_t n, forecasts, confusion[DRIFT_CLASSES_MOST * DRIFT_CLASSES_MOST];
    bin bin[DRIFT_CLASSES_MOST][BINS];
    double sum, squares; // of losses
} tally;

static void add_classes(tally *t, const double *p, int label) {
    const double least = 1e-12;
    int best = 0;
    double loss = -log(fmax(p[label], least));
    for (int k = 0; k < t->classes; k++) {
        if (p[k] > p[best]) best = k;
        int at = (int)(p[k] * BINS);
        bin *b = &t->bin[k][at < 0 ? 0 : at < BINS ? at : BINS - 1];
        b->count++;
        b->right += k == label;
        b->sum += p[k];
    }
    t->confusion[label * t->classes + best]++;
    t->sum += loss;
    t->squares += loss * loss;
    t->n++;
}

static void add_forecast(tally *t, const double *v, const float *target, int64_t horizon) {
    double error = 0;
    for (int64_t h = 0; h < horizon; h++) error += fabs(v[h] - (double)target[h]);
    error /= (double)horizon;
    t->sum += error;
    t->squares += error * error;
    t->n++;
}

static void finish(const tally *t, drift *d) {
    double n = (double)t->n, gap = 0;
    d->scores = unknown();
    d->scores.samples = t->n;
    d->deviation = NAN;
    if (!t->n) return;
    double mean = t->sum / n;
    d->deviation = t->n > 1 ? sqrt(fmax(0, t->squares - n * mean * mean) / (n - 1)) : NAN;
    if (!t->classes) {
        d->scores.mae = mean;
        return;
    }
    d->scores.log_loss = mean;
    d->scores.accuracy = metric_accuracy(t->confusion, t->classes);
    d->scores.mcc = metric_mcc(t->confusion, t->classes);
    memset(d->scores.share, 0, sizeof d->scores.share);
    for (int k = 0; k < t->classes; k++) {
        for (int b = 0; b < BINS; b++) gap += fabs(t->bin[k][b].sum - (double)t->bin[k][b].right);
        for (int c = 0; c < t->classes; c++) d->scores.share[k] += (double)t->confusion[c * t->classes + k] / n;
    }
    d->scores.calibration = gap / (n * t->classes);
}

// The row of the bar with this open; -1 where there is none.
static int64_t row_at(const judged *g, int64_t time) {
    int64_t low = 0, high = g->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (g->bar[middle].time < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->count && g->bar[low].time == time ? low : -1;
}

enum { WIDTH_MOST = 4096 };

// The numbers of an answer; how many.
static int64_t numbers_of(json_t *row, double *to) {
    const char *text = json_string_value(json_object_get(row, "answer"));
    err unused;
    json_t *all = text ? json_read(text, strlen(text), &unused) : NULL;
    int64_t n = json_is_array(all) ? (int64_t)json_array_size(all) : 0;
    if (n > WIDTH_MOST) n = 0;
    for (int64_t i = 0; i < n; i++) {
        to[i] = results_number(json_array_get(all, (size_t)i));
        if (isnan(to[i])) n = 0;
    }
    json_decref(all);
    return n;
}

static void score(const judged *g, const build_options *o, json_t *rows, drift *d) {
    double v[WIDTH_MOST];
    tally t = {.classes = d->classes};
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        int64_t time = json_integer_value(json_object_get(row, "time")), at = row_at(g, time);
        int64_t end = json_integer_value(json_object_get(row, "end")), n = numbers_of(row, v);
        if (!d->to || end > d->to) d->to = end;
        if (!d->answers++ || time < d->opened) {
            d->opened = time;
            d->from = end;
        }
        if (at < 0 || g->end[at] < 0) continue;
        if (d->classes && n == d->classes && g->label[at] >= 0 && g->label[at] < d->classes)
            add_classes(&t, v, g->label[at]);
        if (!d->classes && n == o->horizon) add_forecast(&t, v, g->target + at * o->horizon, o->horizon);
    }
    finish(&t, d);
}

// The number that a query for an instrument from a moment on gives.
static bool count_rows(journal *j, const char *symbol, const char *what, int64_t from, int64_t *n, err *e) {
    char sql[256]; // `what` is a constant of this file
    snprintf(sql, sizeof sql, "SELECT COUNT(*) AS n FROM %s AND time >= %lld", what, (long long)from);
    json_t *rows = journal_rows(j, sql, symbol, e);
    *n = json_integer_value(json_object_get(json_array_get(rows, 0), "n"));
    json_decref(rows);
    return rows != NULL;
}

static bool read_label(journal *j, build_options *o, err *e) {
    char *text;
    err unused;
    if (!journal_word(j, "label", &text, e)) return false;
    json_t *all = text ? json_read(text, strlen(text), &unused) : NULL;
    *o = build_defaults;
    const char *kind = json_string_value(json_object_get(all, "kind"));
    bool acts = kind && strcmp(kind, "agent") == 0, ok = all && !acts && build_label_read(all, o);
    json_decref(all);
    free(text);
    if (acts)
        return err_input(e, "the state is of an agent, whose actions have no label to be judged by; `tradewind live "
                            "--status` shows its account, `tradewind evaluate` that of the run's test");
    return ok || err_input(e, "the state does not say what the run's labels mean; it is of an older session");
}

// Standard errors between the two losses, each of as many answers as do not overlap.
static void compare(drift *d, const build_options *o, const drift_scores *reference) {
    double ours = d->classes ? d->scores.log_loss : d->scores.mae;
    double theirs = !reference ? NAN : d->classes ? reference->log_loss : reference->mae;
    double reach = (double)build_reach(o), n = (double)d->scores.samples / reach;
    double m = reference ? (double)reference->samples / reach : 0;
    d->apart = n >= 2 && m >= 2 ? (ours - theirs) / (d->deviation * sqrt(1 / n + 1 / m)) : NAN;
}

bool drift_make(journal *j, const char *symbol, int64_t last, const drift_scores *reference, drift *d, err *e) {
    build_options o;
    judged g = {0};
    char sql[256];
    *d = (drift){.apart = NAN};
    snprintf(d->symbol, sizeof d->symbol, "%s", symbol);
    if (!read_label(j, &o, e)) return false;
    d->classes = build_classes(&o);
    if (d->classes > DRIFT_CLASSES_MOST) return err_input(e, "labels of %d classes are not compared", d->classes);
    snprintf(sql, sizeof sql,
        "SELECT time, end, answer FROM decisions WHERE symbol = ?1 AND answer IS NOT NULL ORDER BY time DESC LIMIT "
        "%lld",
        (long long)last);
    json_t *rows = journal_rows(j, sql, symbol, e);
    bool ok = rows != NULL;
    if (ok) {
        int64_t most = last + build_reach(&o) + build_volatility_bars(&o) + 1;
        // Decisions without an answer lie between those with one.
        g.bar = journal_bars(j, symbol, 0, INT64_MIN, most < INT64_MAX / 4 ? 4 * most : INT64_MAX, &g.count, e);
        ok = g.bar && judge(&g, &o, e);
    }
    if (ok) score(&g, &o, rows, d);
    ok = ok && count_rows(j, symbol, "decisions WHERE symbol = ?1", d->opened, &d->decisions, e) &&
         count_rows(j, symbol, "decisions WHERE symbol = ?1 AND kind = 'held'", d->opened, &d->held, e) &&
         count_rows(j, symbol, "events WHERE symbol = ?1 AND kind = 'outside'", d->opened, &d->outside, e);
    if (ok) compare(d, &o, reference);
    json_decref(rows);
    judged_done(&g);
    return ok;
}

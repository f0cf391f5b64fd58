#include "train/skill.h"

#include "train/metric.h"
#include "train/naive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *title;
    bool higher;
    int decimals; // 0: of any size, so that 4 figures count
} metrics[SKILL_METRICS] = {[SKILL_LOG_LOSS] = {"log_loss", "log loss", false, 4},
    [SKILL_ACCURACY] = {"accuracy", "accuracy", true, 4},
    [SKILL_MCC] = {"mcc", "MCC", true, 4},
    [SKILL_RMSE] = {"rmse", "RMSE", false, 0},
    [SKILL_MAE] = {"mae", "MAE", false, 0},
    [SKILL_SMAPE] = {"smape", "sMAPE", false, 3},
    [SKILL_MASE] = {"mase", "MASE", false, 3}};

const char *skill_title(skill_metric m) {
    return metrics[m].title;
}

const char *skill_name(skill_metric m) {
    return metrics[m].name;
}

bool skill_differs(skill_metric m) {
    return metrics[m].higher;
}

const char *skill_figure(skill_metric m, double v, char *text, size_t room) {
    if (metrics[m].decimals)
        snprintf(text, room, "%.*f", metrics[m].decimals, v);
    else
        snprintf(text, room, "%.4g", v);
    return text;
}

// Terms of a sample. Of classes: 1, then of every answer its loss and 1 where it is right, then a count by true class
// and one by the model's class. Of forecasts: 1, values, 1 where it has a scale, then of every answer sums of absolute
// and squared errors, sMAPE and MASE. Answer 0 is the model's, the others are trivial.
enum { TERM_SAMPLES, TERM_CLASSES, TERM_VALUES = 1, TERM_SCALED, TERM_ERRORS };
enum { OF_LOSS, OF_RIGHT, CLASS_TERMS };
enum { OF_ABSOLUTE, OF_SQUARE, OF_SMAPE, OF_MASE, ERROR_TERMS };

// Values of a sample's series that are known at the sample, and room for a forecast.
typedef struct {
    float *raw;
    double *known, *forecast;
} history;

typedef struct {
    const skill_input *in;
    skill_table *t;
    bool classes;
    int answers; // the model's and the trivial ones
    int64_t count, terms;
    history history; // of forecasts
    double *term;    // [terms] of a sample
    double *sums;    // [terms] of a group
    int64_t *unit;   // [count] of the bootstrap
    double *value;   // [units, terms] of a group; NULL where there are no answers, and so no intervals
} maker;

// Samples of a group: those that `order` lists, or all.
typedef struct {
    const int64_t *order;
    int64_t count;
} members;

static double *class_terms(double *term, int answer) {
    return term + TERM_CLASSES + answer * CLASS_TERMS;
}

static double *error_terms(double *term, int answer) {
    return term + TERM_ERRORS + answer * ERROR_TERMS;
}

// Terms of classes

// A probability of 0 would be an infinite loss.
static double log_loss(double p) {
    return -log(p > 1e-15 ? p : 1e-15);
}

static void add_class(const maker *m, int64_t i, double *term) {
    const skill_input *in = m->in;
    int K = in->data->classes;
    int32_t label = in->data->label[part_sample(&in->samples, i)];
    double *counts = class_terms(term, m->answers);
    term[TERM_SAMPLES] = 1;
    class_terms(term, 1)[OF_RIGHT] = label == m->t->majority;
    class_terms(term, 2)[OF_LOSS] = log_loss(in->share[label]);
    counts[label] = 1;
    if (!in->answer) return;
    const float *p = in->answer + i * in->width + in->at;
    int32_t said = 0;
    for (int k = 1; k < K; k++)
        if (p[k] > p[said]) said = k;
    class_terms(term, 0)[OF_LOSS] = log_loss((double)p[label]);
    class_terms(term, 0)[OF_RIGHT] = said == label;
    counts[K + said] = 1;
}

static double mcc_of(const double *is, const double *said, int K, double right, double n) {
    double pt = 0, pp = 0, tt = 0;
    for (int k = 0; k < K; k++) {
        pt += said[k] * is[k];
        pp += said[k] * said[k];
        tt += is[k] * is[k];
    }
    double size = sqrt((n * n - pp) * (n * n - tt));
    return size > 0 ? (right * n - pt) / size : 0;
}

static double score_classes(const maker *m, skill_metric k, int answer, const double *sums) {
    const double *of = sums + TERM_CLASSES + answer * CLASS_TERMS, *is = sums + TERM_CLASSES + m->answers * CLASS_TERMS;
    double n = sums[TERM_SAMPLES];
    bool prior = answer && m->t->trivial[answer - 1] == TRIVIAL_PRIOR;
    if (!(n > 0) || (answer && prior != (k == SKILL_LOG_LOSS))) return NAN;
    if (k == SKILL_LOG_LOSS) return of[OF_LOSS] / n;
    if (k == SKILL_ACCURACY) return of[OF_RIGHT] / n;
    return answer ? 0 : mcc_of(is, is + m->in->data->classes, m->in->data->classes, of[OF_RIGHT], n);
}

// Terms of forecasts

static bool history_open(history *h, const skill_input *in, err *e) {
    const stream *from = &in->data->stream[0];
    int64_t longest = 0;
    for (int64_t k = 0; in->task & METRIC_SERIES && k < in->samples.count; k++) {
        int64_t i = part_sample(&in->samples, k), n = from->row[i] - from->first[i] + 1;
        longest = n > longest ? n : longest;
    }
    h->raw = malloc((size_t)(longest + 1) * sizeof *h->raw);
    h->known = malloc((size_t)(longest + 1) * sizeof *h->known);
    h->forecast = malloc((size_t)in->data->target_width * sizeof *h->forecast);
    return (h->raw && h->known && h->forecast) || err_run(e, "out of memory for trivial forecasts");
}

static void history_close(history *h) {
    free(h->raw);
    free(h->known);
    free(h->forecast);
}

// Values read; 0 where the data are not series.
static int64_t history_read(const history *h, const skill_input *in, int64_t sample) {
    const stream *from = &in->data->stream[0];
    if (!(in->task & METRIC_SERIES)) return 0;
    int64_t n = from->row[sample] - from->first[sample] + 1;
    table_read(&from->series, from->first[sample], n, h->raw);
    for (int64_t t = 0; t < n; t++) h->known[t] = (double)h->raw[t];
    return n;
}

static void add_errors(const float *y, const double *f, int64_t H, double scale, double *to) {
    for (int64_t i = 0; i < H; i++) {
        double is = (double)y[i], off = fabs(is - f[i]), size = fabs(is) + fabs(f[i]);
        to[OF_ABSOLUTE] += off;
        to[OF_SQUARE] += off * off;
        to[OF_SMAPE] += size > 0 ? 200 * off / size / (double)H : 0;
    }
    to[OF_MASE] = scale > 0 ? to[OF_ABSOLUTE] / (double)H / scale : 0;
}

static void add_forecast(const maker *m, int64_t i, double *term) {
    const skill_input *in = m->in;
    const history *h = &m->history;
    const dataset *d = in->data;
    int64_t sample = part_sample(&in->samples, i), H = d->target_width, n = history_read(h, in, sample);
    const float *y = d->target + sample * H;
    trivial_inputs from = {h->known, n, in->season, in->mean, d->price ? (double)d->price[sample] : 0};
    int64_t seen = in->window && in->window < n ? in->window : n;
    double scale = n ? naive_scale(h->known + n - seen, seen, in->season) : 0;
    term[TERM_SAMPLES] = 1;
    term[TERM_VALUES] = (double)H;
    term[TERM_SCALED] = scale > 0;
    for (int k = 0; k < m->t->trivials; k++) {
        trivial_forecast(m->t->trivial[k], &from, h->forecast, H);
        add_errors(y, h->forecast, H, scale, error_terms(term, 1 + k));
    }
    if (!in->answer) return;
    for (int64_t k = 0; k < H; k++) h->forecast[k] = (double)in->answer[i * in->width + in->at + k];
    add_errors(y, h->forecast, H, scale, error_terms(term, 0));
}

static double score_forecasts(skill_metric k, int answer, const double *sums) {
    const double *of = sums + TERM_ERRORS + answer * ERROR_TERMS;
    switch (k) {
    case SKILL_RMSE: return sums[TERM_VALUES] > 0 ? sqrt(of[OF_SQUARE] / sums[TERM_VALUES]) : (double)NAN;
    case SKILL_MAE: return sums[TERM_VALUES] > 0 ? of[OF_ABSOLUTE] / sums[TERM_VALUES] : (double)NAN;
    case SKILL_SMAPE: return sums[TERM_SAMPLES] > 0 ? of[OF_SMAPE] / sums[TERM_SAMPLES] : (double)NAN;
    default: return sums[TERM_SCALED] > 0 ? of[OF_MASE] / sums[TERM_SCALED] : (double)NAN;
    }
}

// Units of the bootstrap

// Moments of samples in time order, and the most of them that a label reaches over.
static int64_t number_moments(const maker *m) {
    const dataset *d = m->in->data;
    const split_part *p = &m->in->samples;
    int64_t units = 0, horizon = 1, ahead = 0;
    for (int64_t i = 0; i < m->count; i++) {
        bool same = i && d->time && d->time[part_sample(p, i)] == d->time[part_sample(p, i - 1)];
        m->unit[i] = same ? units - 1 : units++;
    }
    m->t->units = units;
    if (!d->end) return d->horizon > 1 ? d->horizon : 1;
    for (int64_t i = 0; i < m->count; i++) {
        int64_t end = d->end[part_sample(p, i)];
        ahead = ahead > i ? ahead : i;
        while (ahead + 1 < m->count && d->time[part_sample(p, ahead + 1)] <= end) ahead++;
        int64_t over = m->unit[ahead] - m->unit[i];
        horizon = over > horizon ? over : horizon;
    }
    return horizon;
}

// Series of a panel, those that have samples, in the order of their first ones.
static void number_series(const maker *m, int64_t *number) {
    for (int64_t k = 0; k < m->in->data->panel; k++) number[k] = -1;
    for (int64_t i = 0; i < m->count; i++) {
        int64_t series = dataset_panel_of(m->in->data, part_sample(&m->in->samples, i));
        if (number[series] < 0) number[series] = m->t->units++;
        m->unit[i] = number[series];
    }
}

static bool number_units(maker *m, err *e) {
    const dataset *d = m->in->data;
    m->t->series = d->panel && (d->held || !d->time);
    if (!m->t->series) {
        int64_t horizon = number_moments(m);
        m->t->block = bootstrap_block(m->t->units, horizon);
        return true;
    }
    int64_t *number = malloc((size_t)d->panel * sizeof *number);
    if (!number) return err_run(e, "out of memory for %lld series", (long long)d->panel);
    number_series(m, number);
    m->t->block = 1;
    free(number);
    return true;
}

// Groups

static double score_of(const maker *m, skill_metric k, int answer, const double *sums) {
    return m->classes ? score_classes(m, k, answer, sums) : score_forecasts(k, answer, sums);
}

static double skill_of(skill_metric k, double score, double trivial) {
    if (metrics[k].higher) return score - trivial;
    return trivial > 0 ? 1 - score / trivial : (double)NAN;
}

typedef struct {
    const maker *m;
    const skill_group *g;
} statistics_of;

// Score and skill of every row.
static void statistics(const void *arg, const double *sums, double *to) {
    const statistics_of *of = arg;
    for (int k = 0; k < of->m->t->rows; k++) {
        const skill_row *r = &of->g->row[k];
        to[2 * k] = score_of(of->m, r->metric, 0, sums);
        to[2 * k + 1] = NAN;
        if (r->best >= 0) to[2 * k + 1] = skill_of(r->metric, to[2 * k], score_of(of->m, r->metric, 1 + r->best, sums));
    }
}

static void fill_row(const maker *m, skill_row *r, const double *sums) {
    bool higher = metrics[r->metric].higher;
    r->best = -1;
    for (int k = 0; k < m->t->trivials; k++) {
        double v = r->trivial[k] = score_of(m, r->metric, 1 + k, sums);
        double best = r->best < 0 ? NAN : r->trivial[r->best];
        if (!isnan(v) && (isnan(best) || (higher ? v > best : v < best))) r->best = k;
    }
    r->score = m->in->answer ? score_of(m, r->metric, 0, sums) : NAN;
    r->skill = r->best >= 0 ? skill_of(r->metric, r->score, r->trivial[r->best]) : NAN;
    r->score_range = r->skill_range = (interval){NAN, NAN};
}

// Adds the group's samples up, by unit too where there are answers.
static void sum_group(const maker *m, members of, skill_group *g) {
    memset(m->sums, 0, (size_t)m->terms * sizeof *m->sums);
    if (m->value) memset(m->value, 0, (size_t)(m->t->units * m->terms) * sizeof *m->value);
    for (int64_t j = 0, before = -1; j < of.count; j++) {
        int64_t i = of.order ? of.order[j] : j;
        memset(m->term, 0, (size_t)m->terms * sizeof *m->term);
        m->classes ? add_class(m, i, m->term) : add_forecast(m, i, m->term);
        for (int64_t k = 0; k < m->terms; k++) m->sums[k] += m->term[k];
        if (!m->value) continue;
        double *to = m->value + m->unit[i] * m->terms;
        for (int64_t k = 0; k < m->terms; k++) to[k] += m->term[k];
        g->units += m->unit[i] != before;
        before = m->unit[i];
    }
    g->samples = of.count;
    if (!of.order) g->units = m->t->units; // samples of a series need not follow each other
}

// A group that has samples in fewer units than two blocks has no intervals: hardly any resample would hold others of
// its samples than the ones that are there.
static bool fill_group(const maker *m, members of, skill_group *g, err *e) {
    static const skill_metric of_classes[] = {SKILL_LOG_LOSS, SKILL_ACCURACY, SKILL_MCC},
                              of_forecasts[] = {SKILL_RMSE, SKILL_MAE, SKILL_SMAPE, SKILL_MASE};
    interval range[2 * SKILL_ROWS_MOST];
    sum_group(m, of, g);
    for (int k = 0; k < m->t->rows; k++) {
        g->row[k].metric = m->classes ? of_classes[k] : of_forecasts[k];
        fill_row(m, &g->row[k], m->sums);
    }
    if (!m->value || g->units < 2 * m->t->block) return true;
    bootstrap_table table = {m->value, m->t->units, m->terms, m->t->block};
    statistics_of what = {m, g};
    if (!bootstrap_intervals(&table, statistics, &what, 2 * m->t->rows, range, e)) return false;
    for (int k = 0; k < m->t->rows; k++) {
        g->row[k].score_range = range[2 * k];
        g->row[k].skill_range = range[2 * k + 1];
    }
    return true;
}

// Samples by instrument, each's in time order: those of instrument k are order[end[k - 1]] to order[end[k] - 1].
// Returns how many instruments have samples.
static int order_samples(const maker *m, int64_t *order, int64_t *end) {
    const dataset *d = m->in->data;
    int there = 0;
    for (int64_t i = 0; i < m->count; i++) end[dataset_panel_of(d, part_sample(&m->in->samples, i))]++;
    for (int64_t k = 0, all = 0; k < d->panel; k++) {
        there += end[k] > 0;
        all += end[k];
        end[k] = all - end[k];
    }
    for (int64_t i = 0; i < m->count; i++) order[end[dataset_panel_of(d, part_sample(&m->in->samples, i))]++] = i;
    return there;
}

static bool fill_instruments(const maker *m, const int64_t *order, const int64_t *end, err *e) {
    const dataset *d = m->in->data;
    bool ok = true;
    for (int64_t k = 0; ok && k < d->panel; k++) {
        int64_t from = k ? end[k - 1] : 0;
        if (end[k] == from) continue;
        skill_group *g = &m->t->group[m->t->groups++];
        g->name = d->panel_names[k];
        ok = fill_group(m, (members){order + from, end[k] - from}, g, e);
    }
    return ok;
}

static bool fill_groups(const maker *m, err *e) {
    const dataset *d = m->in->data;
    bool instruments = m->value && d->panel > 1 && !m->t->series;
    int64_t *order = instruments ? malloc((size_t)m->count * sizeof *order) : NULL;
    int64_t *end = instruments ? calloc((size_t)d->panel, sizeof *end) : NULL;
    bool ok = !instruments || (order && end);
    int groups = 1 + (ok && instruments ? order_samples(m, order, end) : 0);
    m->t->group = calloc((size_t)groups, sizeof *m->t->group);
    if (!ok || !m->t->group) ok = err_run(e, "out of memory for groups");
    ok = ok && fill_group(m, (members){NULL, m->count}, &m->t->group[m->t->groups++], e);
    ok = ok && (!instruments || fill_instruments(m, order, end, e));
    free(order);
    free(end);
    return ok;
}

bool skill_make(const skill_input *in, skill_table *t, err *e) {
    maker m = {.in = in, .t = t, .classes = in->task & METRIC_CLASSES, .count = in->samples.count};
    int K = in->data->classes;
    *t = (skill_table){.rows = m.classes ? 3 : in->task & METRIC_SERIES ? 4 : 2};
    t->trivials = trivial_list(in->task, in->data, in->season, t->trivial);
    if (m.classes) t->majority = trivial_majority(in->share, K);
    m.answers = 1 + t->trivials;
    m.terms = m.classes ? TERM_CLASSES + m.answers * CLASS_TERMS + 2 * K : TERM_ERRORS + m.answers * ERROR_TERMS;
    m.term = malloc((size_t)m.terms * sizeof *m.term);
    m.sums = malloc((size_t)m.terms * sizeof *m.sums);
    m.unit = malloc((size_t)m.count * sizeof *m.unit);
    bool ok =
        (m.term && m.sums && m.unit) || err_run(e, "out of memory for the scores of %lld samples", (long long)m.count);
    ok = ok && number_units(&m, e) && (m.classes || history_open(&m.history, in, e));
    if (ok && in->answer) m.value = malloc((size_t)(t->units * m.terms) * sizeof *m.value);
    if (ok && in->answer && !m.value) ok = err_run(e, "out of memory for %lld moments", (long long)t->units);
    ok = ok && fill_groups(&m, e);
    history_close(&m.history);
    free(m.term);
    free(m.sums);
    free(m.unit);
    free(m.value);
    if (!ok) skill_done(t);
    return ok;
}

void skill_done(skill_table *t) {
    free(t->group);
    *t = (skill_table){0};
}

skill_verdict skill_judge(const skill_row *r) {
    if (isnan(r->skill_range.low)) return SKILL_OPEN;
    if (r->skill_range.low > 0) return SKILL_BETTER;
    return r->skill_range.high < 0 ? SKILL_WORSE : SKILL_EQUAL;
}

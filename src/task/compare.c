#include "task/compare.h"

#include "data/npz.h"
#include "run/db.h"
#include "run/outline.h"
#include "run/results.h"
#include "run/run.h"
#include "task/members.h"
#include "train/metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES_MOST_HERE = 16, MEMBERS_READ = 1000, FOLDS_READ = 1000, HORIZON_USUAL = 24 };

// Answers of one run to a part

typedef struct {
    int64_t count, width; // width: targets of a sample; 0: classes
    int64_t *sample;
    int32_t *label, *choice;
    float *target, *forecast;
} kept;

static void kept_done(kept *k) {
    free(k->sample);
    free(k->label);
    free(k->choice);
    free(k->target);
    free(k->forecast);
    *k = (kept){0};
}

// An array of so many elements, which the caller frees; NULL where it is not there or has another size.
static void *read_array(const npz *z, const char *name, npy_type type, size_t bytes, int64_t elements) {
    err unused;
    const npz_entry *n = npz_find(z, name);
    int64_t has = n ? 1 : 0;
    for (int i = 0; n && i < n->header.rank; i++) has *= n->header.dim[i];
    if (!n || n->kind != NPZ_ARRAY || has != elements) return NULL;
    void *to = malloc((size_t)elements * bytes + 1);
    NEED(to, "out of memory for the answers of a run");
    if (npz_read(z, n, NULL, type, to, &unused)) return to;
    free(to);
    return NULL;
}

static bool read_classes(const npz *z, kept *k) {
    k->label = read_array(z, "label", NPY_I32, sizeof *k->label, k->count);
    k->choice = read_array(z, "prediction", NPY_I32, sizeof *k->choice, k->count);
    return k->label && k->choice;
}

// Forecasts without quantiles.
static bool read_forecasts(const npz *z, kept *k) {
    const npz_entry *n = npz_find(z, "target");
    if (!n || n->header.rank != 2 || n->header.dim[0] != k->count) return false;
    k->width = n->header.dim[1];
    k->target = read_array(z, "target", NPY_F32, sizeof *k->target, k->count * k->width);
    k->forecast = read_array(z, "forecast", NPY_F32, sizeof *k->forecast, k->count * k->width);
    return k->target && k->forecast;
}

static bool read_kept(const char *dir, const char *part, kept *k) {
    char name[64];
    err unused;
    npz z;
    *k = (kept){0};
    snprintf(name, sizeof name, "predictions_%s.npz", part);
    char *path = run_path(dir, name);
    bool ok = access(path, R_OK) == 0 && npz_open(&z, path, &unused);
    free(path);
    if (!ok) return false;
    const npz_entry *n = npz_find(&z, "sample");
    k->count = n && n->header.rank == 1 ? n->header.dim[0] : 0;
    if (k->count) k->sample = read_array(&z, "sample", NPY_I64, sizeof *k->sample, k->count);
    ok = k->sample && (npz_find(&z, "label") ? read_classes(&z, k) : read_forecasts(&z, k));
    npz_close(&z);
    if (!ok) kept_done(k);
    return ok;
}

// The same samples with the same truth.
static bool are_of_one_set(const kept *a, const kept *b) {
    size_t n = (size_t)a->count;
    if (a->count != b->count || a->width != b->width || memcmp(a->sample, b->sample, n * sizeof *a->sample) != 0)
        return false;
    return a->width ? memcmp(a->target, b->target, n * (size_t)a->width * sizeof *a->target) == 0
                    : memcmp(a->label, b->label, n * sizeof *a->label) == 0;
}

// The bootstrap of pairs

static double mcc_of(const double *counts, int K) {
    int64_t whole[CLASSES_MOST_HERE * CLASSES_MOST_HERE];
    for (int i = 0; i < K * K; i++) whole[i] = (int64_t)(counts[i] + 0.5);
    return metric_mcc(whole, K);
}

// Scores of both and their difference; sums are two matrices of counts, or two sums of errors and the samples.
static void score_classes(const void *arg, const double *sums, double *to) {
    int K = *(const int *)arg;
    to[0] = mcc_of(sums, K);
    to[1] = mcc_of(sums + K * K, K);
    to[2] = to[1] - to[0];
}

static void score_forecasts(const void *arg, const double *sums, double *to) {
    (void)arg;
    to[0] = sums[0] / sums[2];
    to[1] = sums[1] / sums[2];
    to[2] = to[1] - to[0];
}

// Classes that truths and answers name; one more than there may be where a number is larger.
static int classes_of(const kept *a, const kept *b) {
    int most = 1;
    for (int64_t i = 0; i < a->count; i++) {
        if (a->label[i] > most) most = a->label[i];
        if (a->choice[i] > most) most = a->choice[i];
        if (b->choice[i] > most) most = b->choice[i];
    }
    return most < CLASSES_MOST_HERE ? most + 1 : CLASSES_MOST_HERE + 1;
}

// Samples whose truth is not known have no terms.
static void put_terms(const kept *k, int64_t i, int K, double *to) {
    if (k->width) {
        double sum = 0;
        for (int64_t j = 0; j < k->width; j++)
            sum += fabs((double)k->forecast[i * k->width + j] - (double)k->target[i * k->width + j]);
        if (isfinite(sum)) *to = sum / (double)k->width;
    } else if (k->label[i] >= 0 && k->choice[i] >= 0) {
        to[k->label[i] * K + k->choice[i]] = 1;
    }
}

static int64_t horizon_of(const char *dir) {
    char *config = run_text(dir, "config.yaml"), *text = config ? outline_value(config, "data.label.horizon") : NULL;
    long n = text ? strtol(text, NULL, 10) : 0;
    free(text);
    free(config);
    return n > 0 ? n : HORIZON_USUAL;
}

static bool compare_kept(const kept *a, const kept *b, int64_t horizon, comparison *c, err *e) {
    int K = a->width ? 0 : classes_of(a, b);
    interval range[3] = {{NAN, NAN}, {NAN, NAN}, {NAN, NAN}};
    double scores[3];
    if (K > CLASSES_MOST_HERE) return true;
    int64_t own = K ? K * K : 1, terms = 2 * own + !K;
    bootstrap_table t = {.units = a->count, .terms = terms, .block = bootstrap_block(a->count, horizon)};
    t.value = calloc((size_t)(a->count * terms), sizeof *t.value);
    double *sums = calloc((size_t)terms, sizeof *sums);
    if (!t.value || !sums) {
        free(t.value);
        free(sums);
        return err_run(e, "out of memory to compare %lld answers", (long long)a->count);
    }
    for (int64_t i = 0; i < a->count; i++) {
        double *row = t.value + i * terms;
        put_terms(a, i, K, row);
        put_terms(b, i, K, row + own);
        if (!K) row[2] = 1;
        for (int64_t k = 0; k < terms; k++) sums[k] += row[k];
    }
    bootstrap_statistics *of = K ? score_classes : score_forecasts;
    of(&K, sums, scores);
    bool ok = bootstrap_intervals(&t, of, &K, 3, range, e);
    c->score[0] = scores[0];
    c->score[1] = scores[1];
    c->difference = scores[2];
    c->range = range[2];
    c->samples = a->count;
    c->way = COMPARE_ANSWERS;
    snprintf(c->metric, sizeof c->metric, K ? "MCC" : "MAE");
    free(t.value);
    free(sums);
    return ok;
}

static bool compare_part(const char *first, const char *second, const char *part, comparison *c, err *e) {
    kept a = {0}, b = {0};
    bool ok = true;
    if (read_kept(first, part, &a) && read_kept(second, part, &b) && are_of_one_set(&a, &b)) {
        ok = compare_kept(&a, &b, horizon_of(first), c, e);
        snprintf(c->part, sizeof c->part, "%s", part);
    }
    kept_done(&a);
    kept_done(&b);
    return ok;
}

// Seeds

// The 97.5 % quantile of Student's distribution.
static double t_quantile(double freedom) {
    static const double table[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
        2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
    int at = (int)freedom;
    if (at < 1) at = 1;
    if (at <= (int)(sizeof table / sizeof *table)) return table[at - 1];
    return 1.96 + 2.5 / freedom;
}

static double mean_of(const double *v, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum / n;
}

// The variance of the mean.
static double error_of(const double *v, int n) {
    double mean = mean_of(v, n), square = 0;
    for (int i = 0; i < n; i++) square += (v[i] - mean) * (v[i] - mean);
    return square / (n - 1) / n;
}

interval compare_means(const double *a, int n, const double *b, int m) {
    if (n < 2 || m < 2) return (interval){NAN, NAN};
    double x = error_of(a, n), y = error_of(b, m), between = mean_of(b, m) - mean_of(a, n);
    double freedom = (x + y) * (x + y) / (x * x / (n - 1) + y * y / (m - 1));
    double reach = x + y > 0 ? t_quantile(freedom) * sqrt(x + y) : 0;
    return (interval){between - reach, between + reach};
}

// A metric of members on validation, as run.db has it: that of agents is of no part there.
typedef struct {
    const char *name, *part, *key;
} metric_of;

typedef struct {
    const metric_of *of;
    double value;
} wanted;

static void take_metric(void *arg, const char *part, const char *name, double value) {
    wanted *w = arg;
    if (strcmp(part, w->of->part) == 0 && strcmp(name, w->of->key) == 0) w->value = value;
}

// A member's metric at its best epoch; NaN where it has none.
static double best_of(const char *dir, const metric_of *metric) {
    wanted w = {metric, NAN};
    db_summary sum;
    err unused;
    char *path = run_path(dir, "run.db");
    db_reader *r = db_reader_open(path, &unused);
    if (r && db_read(r, &sum, &unused) && sum.best_epoch) db_read_metrics(r, sum.best_epoch, take_metric, &w, &unused);
    db_reader_close(r);
    free(path);
    return w.value;
}

static bool read_members(const char *dir, const metric_of *metric, double *to, int *count, err *e) {
    int n = 0, all;
    if (!members_of(dir, &all, e)) return false;
    for (int k = 1; k <= all && n < MEMBERS_READ; k++) {
        char *member = members_dir(dir, k);
        double v = best_of(member, metric);
        if (isfinite(v)) to[n++] = v;
        free(member);
    }
    *count = n;
    return true;
}

static bool compare_seeds(const char *first, const char *second, comparison *c, err *e) {
    static const metric_of metrics[] = {{"mcc", "validation", "mcc"}, {"smape", "validation", "smape"},
        {"mae", "validation", "mae"}, {"reward", "", "eval/mean_reward"}};
    double a[MEMBERS_READ], b[MEMBERS_READ];
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics && c->way == COMPARE_NOTHING; i++) {
        int n, m;
        if (!read_members(first, &metrics[i], a, &n, e) || !read_members(second, &metrics[i], b, &m, e)) return false;
        if (n < 2 || m < 2) continue;
        c->way = COMPARE_SEEDS;
        c->members[0] = n;
        c->members[1] = m;
        c->score[0] = mean_of(a, n);
        c->score[1] = mean_of(b, m);
        c->difference = c->score[1] - c->score[0];
        c->range = compare_means(a, n, b, m);
        snprintf(c->metric, sizeof c->metric, "%s", metrics[i].name);
        snprintf(c->part, sizeof c->part, "validation");
    }
    return true;
}

// Folds

interval compare_pairs(const double *a, const double *b, int n) {
    double *d = malloc((size_t)(n > 0 ? n : 1) * sizeof *d);
    NEED(d, "out of memory for the differences of folds");
    for (int i = 0; i < n; i++) d[i] = b[i] - a[i];
    interval range = {NAN, NAN};
    if (n >= 2) {
        double mean = mean_of(d, n), reach = t_quantile(n - 1) * sqrt(error_of(d, n));
        range = (interval){mean - reach, mean + reach};
    }
    free(d);
    return range;
}

// Folds of groups (cpcv) have tests with holes: they are the same where both walks have the same groups, and the folds
// the same number of as many samples. Others are the same where they begin and end at the same times.
static bool same_test(const json_t *first, const json_t *second, const json_t *a, const json_t *b) {
    const json_t *x = json_object_get(first, "groups"), *y = json_object_get(second, "groups");
    if (!json_equal(json_object_get(a, "test"), json_object_get(b, "test"))) return false;
    if (!x && !y) return true;
    return json_equal(x, y) && json_equal(json_object_get(a, "number"), json_object_get(b, "number")) &&
           json_equal(
               json_array_get(json_object_get(a, "samples"), 2), json_array_get(json_object_get(b, "samples"), 2));
}

void compare_each_fold(
    const json_t *first, const json_t *second, void (*use)(void *arg, json_t *a, json_t *b), void *arg) {
    json_t *a, *b;
    size_t i, k;
    json_array_foreach(json_object_get(first, "folds"), i, a)
        json_array_foreach(json_object_get(second, "folds"), k, b) if (same_test(first, second, a, b)) use(arg, a, b);
}

typedef struct {
    const char *metric;
    int n;
    double score[2][FOLDS_READ];
} fold_scores;

static void take_fold(void *arg, json_t *a, json_t *b) {
    fold_scores *s = arg;
    double x = results_number(json_object_get(json_object_get(a, "metrics"), s->metric));
    double y = results_number(json_object_get(json_object_get(b, "metrics"), s->metric));
    if (!isfinite(x) || !isfinite(y) || s->n == FOLDS_READ) return;
    s->score[0][s->n] = x;
    s->score[1][s->n++] = y;
}

static void compare_folds(const json_t *first, const json_t *second, comparison *c) {
    static const char *const metrics[] = {"mcc", "smape", "mae", "reward"};
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics && c->way == COMPARE_NOTHING; i++) {
        fold_scores s = {.metric = metrics[i]};
        compare_each_fold(first, second, take_fold, &s);
        if (s.n < 2) continue;
        c->way = COMPARE_FOLDS;
        c->folds = s.n;
        for (int k = 0; k < 2; k++) c->score[k] = mean_of(s.score[k], s.n);
        c->difference = c->score[1] - c->score[0];
        c->range = compare_pairs(s.score[0], s.score[1], s.n);
        snprintf(c->metric, sizeof c->metric, "%s", metrics[i]);
        snprintf(c->part, sizeof c->part, "test");
    }
}

// Without a way

static bool is_agent(const char *dir) {
    char env[64] = "", *config = run_text(dir, "config.yaml");
    if (config) outline_put(config, "agent.env", env, sizeof env);
    free(config);
    return env[0];
}

static const char *why_not(const char *first, const char *second, bool walks) {
    if (walks) return "cannot be told: the walks have fewer than two folds with the same test and metric";
    if (is_agent(first) || is_agent(second))
        return "cannot be told of single agents: walk both over the same folds, or train ensembles of each";
    return "cannot be told: `tradewind evaluate` both, on the same samples, or train ensembles of other seeds";
}

static bool compare_walks(const char *first, const char *second, comparison *c, err *e) {
    json_t *a = NULL, *b = NULL;
    bool ok = results_read(first, RESULTS_WALK, &a, e) && results_read(second, RESULTS_WALK, &b, e);
    if (ok) compare_folds(a, b, c);
    if (c->way == COMPARE_NOTHING) snprintf(c->why, sizeof c->why, "%s", why_not(first, second, a && b));
    json_decref(a);
    json_decref(b);
    return ok;
}

bool compare_runs(const char *first, const char *second, comparison *c, err *e) {
    static const char *const parts[] = {"test", "validation", "all"};
    *c = (comparison){.range = {NAN, NAN}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && c->way == COMPARE_NOTHING; i++)
        if (!compare_part(first, second, parts[i], c, e)) return false;
    if (c->way == COMPARE_NOTHING && !compare_seeds(first, second, c, e)) return false;
    return c->way != COMPARE_NOTHING || compare_walks(first, second, c, e);
}

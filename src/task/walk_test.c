#include "task/walk_test.h"

#include "data/when.h"
#include "run/results.h"
#include "run/run.h"
#include "task/evaluation.h"
#include "task/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Scores of all folds together: each fold's answers, and each fold's own trivial ones, on all samples that were tested.
typedef struct {
    int rows;
    skill_metric metric[SKILL_ROWS_MOST];
    double score[SKILL_ROWS_MOST], trivial[SKILL_ROWS_MOST]; // sums over samples; of RMSE of squares
    int64_t samples;
    int classes;
    int64_t confusion[CLASSES_MOST * CLASSES_MOST];
} pool_of_folds;

static double to_sum(skill_metric m, double v, int64_t n) {
    return (m == SKILL_RMSE ? v * v : v) * (double)n;
}

static double from_sum(skill_metric m, double sum, int64_t n) {
    double mean = sum / (double)n;
    return m == SKILL_RMSE ? sqrt(mean) : mean;
}

static double best_trivial(const skill_row *r) {
    return r->best < 0 ? NAN : r->trivial[r->best];
}

static void pool_add(pool_of_folds *p, const skill_table *t, const score *s, int classes) {
    const skill_group *all = &t->group[0];
    p->rows = t->rows;
    p->classes = classes;
    p->samples += all->samples;
    for (int k = 0; k < t->rows; k++) {
        const skill_row *r = &all->row[k];
        p->metric[k] = r->metric;
        p->score[k] += to_sum(r->metric, r->score, all->samples);
        p->trivial[k] += to_sum(r->metric, best_trivial(r), all->samples);
    }
    for (int i = 0; s && i < classes * classes; i++) p->confusion[i] += s->confusion[i];
}

// Documents

// Scores by metric, those of the best trivial answer, and skill against it.
static void add_scores(json_t *to, int rows, const skill_metric *m, const double *score, const double *trivial) {
    json_t *scores = json_object(), *trivials = json_object(), *skills = json_object();
    for (int k = 0; k < rows; k++) {
        const char *name = skill_name(m[k]);
        double skill = skill_differs(m[k]) ? score[k] - trivial[k] : 1 - score[k] / trivial[k];
        json_object_set_new(scores, name, json_number(score[k]));
        json_object_set_new(trivials, name, json_number(trivial[k]));
        json_object_set_new(skills, name, json_number(skill));
    }
    json_object_set_new(to, "metrics", scores);
    json_object_set_new(to, "trivial", trivials);
    json_object_set_new(to, "skill", skills);
}

static void add_fold_scores(json_t *to, const skill_table *t) {
    skill_metric metric[SKILL_ROWS_MOST] = {0};
    double score[SKILL_ROWS_MOST] = {0}, trivial[SKILL_ROWS_MOST] = {0};
    for (int k = 0; k < t->rows; k++) {
        const skill_row *r = &t->group[0].row[k];
        metric[k] = r->metric;
        score[k] = r->score;
        trivial[k] = best_trivial(r);
    }
    add_scores(to, t->rows, metric, score, trivial);
}

// MCC is of the joint confusion matrix; that of trivial answers is 0 within a fold, and so it is here.
static void add_pooled(json_t *to, const pool_of_folds *p) {
    double score[SKILL_ROWS_MOST], trivial[SKILL_ROWS_MOST];
    for (int k = 0; k < p->rows; k++) {
        skill_metric m = p->metric[k];
        score[k] = m == SKILL_MCC ? metric_mcc(p->confusion, p->classes) : from_sum(m, p->score[k], p->samples);
        trivial[k] = from_sum(m, p->trivial[k], p->samples);
    }
    add_scores(to, p->rows, p->metric, score, trivial);
}

// Moments of the first and the last sample, or their numbers where samples have no time.
static json_t *part_json(const dataset *d, const split_part *p) {
    char from[32], to[32];
    if (!p->count) return json_array();
    int64_t first = part_first(p), last = part_end(p) - 1;
    snprintf(from, sizeof from, "%lld", (long long)first);
    snprintf(to, sizeof to, "%lld", (long long)last);
    if (d->time && !d->counted) {
        when_moment_text(from, sizeof from, d->time[first]);
        when_moment_text(to, sizeof to, d->time[last]);
    }
    return json_pack("[s, s]", from, to);
}

static json_t *fold_json(const walk_tested *w, const scheme_fold *f) {
    const split *s = &f->parts;
    char *dir = walk_dir(w->dir, f);
    json_t *j = json_pack("{s:I, s:s, s:o, s:o, s:o, s:[I, I, I]}", "number", (json_int_t)f->number + 1, "directory",
        strrchr(dir, '/') + 1, "train", part_json(w->data, &s->train), "validation", part_json(w->data, &s->validation),
        "test", part_json(w->data, &s->test), "samples", (json_int_t)s->train.count, (json_int_t)s->validation.count,
        (json_int_t)s->test.count);
    free(dir);
    return j;
}

// A fold's test

// A document that is damaged is made anew: all of it follows from the weights.
static bool keep_scores(const evaluation *v, const char *dir, err *e) {
    if (evaluation_store(v, dir, e)) return true;
    char *path = run_path(dir, results_name(RESULTS_EVALUATION));
    bool ok = e->kind == ERR_INPUT && unlink(path) == 0 && evaluation_store(v, dir, e);
    free(path);
    return ok;
}

static bool score_fold(trained *t, const char *dir, pool_of_folds *p, json_t *to, err *e) {
    evaluation v;
    bool ok = evaluation_make(&v, t, e) && keep_scores(&v, dir, e);
    int K = v.score ? t->task.data->classes : 0;
    if (ok) {
        pool_add(p, &v.skill, v.score, K);
        add_fold_scores(to, &v.skill);
        if (K) json_object_set_new(to, "confusion", evaluation_confusion(v.score->confusion, K));
    }
    evaluation_done(&v);
    return ok;
}

// ERR_INPUT where it is not trained to its end.
static bool test_fold(const walk_tested *w, const scheme_fold *f, pool_of_folds *p, json_t *to, err *e) {
    trained t;
    char *dir = walk_dir(w->dir, f);
    trained_options ask = {.run = dir,
        .dataset = w->data,
        .parts = &f->parts,
        .part = "test",
        .devices = w->o->devices,
        .version = w->o->version,
        .finished = true};
    bool ok = trained_open(&t, &ask, e);
    if (ok) {
        ok = score_fold(&t, dir, p, to, e);
        trained_close(&t);
    }
    free(dir);
    return ok;
}

static void set_status(json_t *fold, const char *status, const char *why) {
    json_object_set_new(fold, "status", json_string(status));
    json_object_set_new(fold, "reason", json_string(why));
}

// Adds a fold to the document. False where the run itself fails: a fold that is missing is a row that says so.
static bool add_fold(const walk_tested *w, const scheme_fold *f, pool_of_folds *p, json_t *rows, int *done, err *e) {
    const char *why = f->why;
    err missing;
    json_t *row = fold_json(w, f);
    json_array_append_new(rows, row);
    if (why[0]) {
        set_status(row, "left out", why);
        return true;
    }
    if (test_fold(w, f, p, row, &missing)) {
        set_status(row, "done", "");
        ++*done;
        return true;
    }
    set_status(row, "missing", missing.text);
    if (missing.kind == ERR_RUN) *e = missing;
    return missing.kind != ERR_RUN;
}

// Folds that could be trained and were not tested.
static int64_t count_missing(const json_t *rows) {
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *status = json_string_value(json_object_get(json_array_get(rows, i), "status"));
        n += strcmp(status, "missing") == 0;
    }
    return n;
}

bool walk_test(const walk_tested *w, err *e) {
    pool_of_folds *p = calloc(1, sizeof *p);
    NEED(p, "out of memory for scores");
    json_t *rows = json_array();
    int done = 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < w->folds->count; i++) ok = add_fold(w, &w->folds->fold[i], p, rows, &done, e);
    static const char *const kinds[] = {"rolling", "expanding", "cpcv"};
    json_t *doc = json_pack("{s:s, s:o, s:i, s:I}", "scheme", kinds[w->kind], "folds", rows, "done", done, "samples",
        (json_int_t)p->samples);
    if (done) add_pooled(doc, p);
    if (p->classes && done) {
        json_object_set_new(doc, "classes", evaluation_classes(w->data));
        json_object_set_new(doc, "confusion", evaluation_confusion(p->confusion, p->classes));
    }
    free(p);
    if (ok && !done)
        ok = err_input(e, "%s: no fold is trained yet: %s", w->dir,
            json_string_value(json_object_get(json_array_get(rows, 0), "reason")));
    ok = ok && results_write(w->dir, RESULTS_WALK, json_incref(doc), e);
    int64_t missing = count_missing(rows);
    if (ok) task_tell(&w->o->listener, &(task_event){.kind = TASK_WALK_DONE, .tested = {.dir = w->dir, .doc = doc}});
    json_decref(doc);
    if (!ok || !missing) return ok;
    return err_run(e, "%s: %lld fold%s not there or damaged, as walk.json says; --resume trains %s", w->dir,
        (long long)missing, missing == 1 ? " is" : "s are", missing == 1 ? "it" : "them");
}

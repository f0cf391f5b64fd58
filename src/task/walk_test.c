#include "task/walk_test.h"

#include "data/when.h"
#include "run/results.h"
#include "run/run.h"
#include "task/evaluation.h"
#include "task/importance.h"
#include "task/members.h"
#include "task/walk.h"
#include "task/walk_pool.h"
#include "task/walk_rewards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Scores of all folds: of models or of agents.
typedef struct {
    walk_pool *models;
    walk_rewards agents;
} totals;

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

static trained_options options_of(const walk_tested *w, const scheme_fold *f, const char *dir, const char *part) {
    return (trained_options){.run = dir,
        .dataset = w->data,
        .parts = &f->parts,
        .part = part,
        .devices = w->o->devices,
        .version = w->o->version,
        .finished = true};
}

static bool score_fold(trained *t, const char *dir, walk_pool *p, json_t *to, err *e) {
    evaluation v;
    char *path = NULL;
    bool ok = evaluation_make(&v, t, e) && keep_scores(&v, dir, e) && (path = evaluation_store_answers(&v, dir, e));
    if (ok) walk_pool_add(p, &v, to);
    free(path);
    evaluation_done(&v);
    return ok;
}

// Importance of columns, on the fold's validation. Members of an ensemble would each have their own.
static bool measure_fold(const walk_tested *w, const trained_options *ask, walk_pool *p, err *e) {
    trained t;
    evaluation v;
    int members;
    if (!w->importance) return true;
    if (!members_of(ask->run, &members, e)) return false;
    if (members) return true;
    if (!trained_open(&t, ask, e)) return false;
    bool ok = evaluation_make(&v, &t, e) && (v.importance = task_importance(&t, &(importance_listener){0}, e)) &&
              keep_scores(&v, ask->run, e);
    if (ok) walk_pool_add_importance(p, v.importance);
    evaluation_done(&v);
    trained_close(&t);
    return ok;
}

// An agent's greedy pass over the test.
static bool play_fold(const trained_options *ask, walk_rewards *all, json_t *to, err *e) {
    trained_agent t;
    agent_score s;
    if (!trained_agent_open(&t, ask, e)) return false;
    bool ok = trained_agent_score(&t, &s, e);
    if (ok) walk_rewards_add(all, &t, &s, to);
    trained_agent_close(&t);
    return ok;
}

static bool test_model(const walk_tested *w, const scheme_fold *f, const char *dir, walk_pool *p, json_t *to, err *e) {
    trained t;
    trained_options test = options_of(w, f, dir, "test"), validation = options_of(w, f, dir, "validation");
    bool ok = trained_open(&t, &test, e);
    if (ok) {
        ok = score_fold(&t, dir, p, to, e);
        trained_close(&t);
    }
    return ok && measure_fold(w, &validation, p, e);
}

// ERR_INPUT where it is not trained to its end.
static bool test_fold(const walk_tested *w, const scheme_fold *f, totals *all, json_t *to, err *e) {
    char *dir = walk_dir(w->dir, f);
    trained_options test = options_of(w, f, dir, "test");
    bool ok = w->agents ? play_fold(&test, &all->agents, to, e) : test_model(w, f, dir, all->models, to, e);
    free(dir);
    return ok;
}

static void set_status(json_t *fold, const char *status, const char *why) {
    json_object_set_new(fold, "status", json_string(status));
    json_object_set_new(fold, "reason", json_string(why));
}

// Adds a fold to the document. False where the run itself fails: a fold that is missing is a row that says so.
static bool add_fold(const walk_tested *w, const scheme_fold *f, totals *all, json_t *rows, int *done, err *e) {
    const char *why = f->why;
    err missing;
    json_t *row = fold_json(w, f);
    json_array_append_new(rows, row);
    if (why[0]) {
        set_status(row, "left out", why);
        return true;
    }
    if (test_fold(w, f, all, row, &missing)) {
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

// Tests the folds, until it is asked to stop.
static bool add_folds(const walk_tested *w, totals *all, json_t *rows, int *done, bool *stopped, err *e) {
    for (int64_t i = 0; i < w->folds->count; i++) {
        const scheme_fold *f = &w->folds->fold[i];
        task_event begins = {.kind = TASK_WALK_TEST, .fold = {.number = f->number + 1}};
        *stopped = !task_tell(&w->o->listener, &begins);
        if (*stopped) return true;
        if (!add_fold(w, f, all, rows, done, e)) return false;
    }
    return true;
}

// Folds that test each group in each path of the combinatorial scheme.
static void put_paths(const walk_tested *w, json_t *doc) {
    const scheme_folds *f = w->folds;
    json_t *groups = json_array(), *paths = json_array();
    for (int g = 0; g < f->groups; g++) {
        split_part part = part_of(f->group[g]);
        json_array_append_new(groups, json_pack("{s:i, s:o, s:I}", "number", g + 1, "test", part_json(w->data, &part),
                                          "samples", (json_int_t)part.count));
    }
    for (int p = 0; p < f->paths; p++) {
        json_t *folds = json_array();
        for (int g = 0; g < f->groups; g++)
            json_array_append_new(folds, json_integer((json_int_t)scheme_of_path(f, p, g) + 1));
        json_array_append_new(paths, json_pack("{s:i, s:o}", "number", p + 1, "folds", folds));
    }
    json_object_set_new(doc, "groups", groups);
    json_object_set_new(doc, "paths", paths);
}

static json_t *walk_json(const walk_tested *w, const totals *all, json_t *rows, int done) {
    static const char *const kinds[] = {"rolling", "expanding", "cpcv"};
    json_t *doc = json_pack("{s:s, s:O, s:i, s:I}", "scheme", kinds[w->kind], "folds", rows, "done", done, "samples",
        (json_int_t)(w->agents ? all->agents.samples : all->models->samples));
    if (w->folds->paths) put_paths(w, doc);
    if (w->agents)
        walk_rewards_put(&all->agents, doc);
    else
        walk_pool_put(all->models, w->data, doc);
    return doc;
}

// Folds that were trained here and are not there are a failure.
static bool refuse_empty(const walk_tested *w, const json_t *rows, err *e) {
    err_input(e, "%s: no fold is trained yet: %s", w->dir,
        json_string_value(json_object_get(json_array_get(rows, 0), "reason")));
    if (!w->gathered) e->kind = ERR_RUN;
    return false;
}

static bool finish(const walk_tested *w, json_t *doc, err *e) {
    json_t *rows = json_object_get(doc, "folds");
    int64_t missing = count_missing(rows);
    if (!json_integer_value(json_object_get(doc, "done"))) return refuse_empty(w, rows, e);
    if (!results_write(w->dir, RESULTS_WALK, json_incref(doc), e)) return false;
    task_tell(&w->o->listener, &(task_event){.kind = TASK_WALK_DONE, .tested = {.dir = w->dir, .doc = doc}});
    if (!missing) return true;
    return err_run(e, "%s: %lld fold%s not there or damaged, as walk.json says; --resume trains %s", w->dir,
        (long long)missing, missing == 1 ? " is" : "s are", missing == 1 ? "it" : "them");
}

bool walk_test(const walk_tested *w, bool *stopped, err *e) {
    totals all = {.models = walk_pool_new(), .agents = {.follow = w->kind != SCHEME_CPCV}};
    json_t *rows = json_array();
    int done = 0;
    bool ok = add_folds(w, &all, rows, &done, stopped, e);
    if (ok && !*stopped) {
        json_t *doc = walk_json(w, &all, rows, done);
        ok = finish(w, doc, e);
        json_decref(doc);
    }
    json_decref(rows);
    walk_pool_free(all.models);
    return ok;
}

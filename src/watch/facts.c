#include "watch/facts.h"

#include "run/outline.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The database

static void take_metric(void *arg, int64_t epoch, const db_metric *m) {
    facts *f = arg;
    int i = 0;
    while (i < f->curves && (strcmp(f->curve[i].part, m->part) != 0 || strcmp(f->curve[i].name, m->name) != 0)) i++;
    if (i == FACTS_CURVES_MOST) return;
    if (i == f->curves) {
        curve *c = &f->curve[f->curves++];
        snprintf(c->part, sizeof c->part, "%s", m->part);
        snprintf(c->name, sizeof c->name, "%s", m->name);
        c->values = trace_new();
        c->best = NAN;
    }
    if (epoch == f->sum.best_epoch) f->curve[i].best = m->value;
    trace_add(f->curve[i].values, (double)epoch, m->value, m->value, m->value);
}

static void take_steps(void *arg, const db_steps_row *r) {
    facts *f = arg;
    trace_add(f->steps, (double)r->step, r->loss_min, r->loss_mean, r->loss_max);
}

static void take_sample(void *arg, const db_sample_row *r) {
    facts *f = arg;
    if (isnan(f->monitor_start)) f->monitor_start = r->time;
    double at = r->time - f->monitor_start;
    trace_add(f->memory, at, r->memory_process, r->memory_process, r->memory_process);
    trace_add(f->others, at, r->memory_others, r->memory_others, r->memory_others);
    trace_add(f->utilisation, at, r->utilisation, r->utilisation, r->utilisation);
    f->memory_total = fmax(f->memory_total, r->memory_total); // NaN gives way
}

// The matrix of the last epoch that was the best so far.
static void take_epoch(void *arg, const db_epoch_row *r) {
    facts *f = arg;
    err unused;
    if (!r->best) return;
    json_decref(f->best_confusion);
    f->best_confusion = r->confusion ? json_read(r->confusion, strlen(r->confusion), &unused) : NULL;
}

static bool read_db(facts *f, const char *path, err *e) {
    db_reader *r = db_reader_open(path, e);
    bool ok = r && db_read(r, &f->sum, e) && db_each_metric(r, take_metric, f, e) &&
              db_each_steps(r, take_steps, f, e) && db_each_sample(r, take_sample, f, e) &&
              db_each_epoch(r, take_epoch, f, e);
    db_reader_close(r);
    return ok;
}

// The directory

static void value_of(const char *text, const char *key, char *to, size_t room) {
    char *value = text ? outline_value(text, key) : NULL;
    snprintf(to, room, "%s", value ? value : "");
    free(value);
}

// A square matrix of numbers.
static bool is_matrix(const json_t *m) {
    size_t n = json_array_size(m), i, k;
    json_t *row, *cell;
    json_array_foreach(m, i, row) {
        if (json_array_size(row) != n) return false;
        json_array_foreach(row, k, cell) if (!json_is_number(cell)) return false;
    }
    return n > 0;
}

static void take_confusion(facts *f, const json_t *from) {
    json_t *matrix = json_object_get(from, "confusion"), *classes = json_object_get(from, "classes");
    if (!is_matrix(matrix)) return;
    f->confusion = matrix;
    if (json_array_size(classes) == json_array_size(matrix)) f->classes = classes;
}

static void choose_part(facts *f) {
    static const char *const order[] = {"test", "validation", "all", "train"};
    for (size_t i = 0; i < sizeof order / sizeof *order && !f->part; i++) {
        f->part = facts_part(f, order[i]);
        f->part_name = f->part ? order[i] : NULL;
    }
    take_confusion(f, f->is_run ? f->part : f->doc[RESULTS_WALK]);
    if (!f->confusion && is_matrix(f->best_confusion)) f->confusion = f->best_confusion;
}

static void choose_metric(facts *f) {
    char asked[32];
    const char *usual = facts_curve(f, "validation", "mase") ? "smape" : "mae";
    value_of(f->config, "train.metric", asked, sizeof asked);
    const char *const order[] = {asked, "mcc", usual};
    for (size_t i = 0; i < sizeof order / sizeof *order && !f->metric; i++)
        for (int k = 0; k < f->curves; k++)
            if (strcmp(f->curve[k].name, order[i]) == 0 && strcmp(order[i], "loss") != 0) f->metric = f->curve[k].name;
}

// `walk`: the trouble with a walk's own document, or none.
static void read_documents(facts *f, err *walk) {
    for (int k = 0; k < RESULTS_KINDS; k++) {
        err *why = &f->trouble[f->troubles];
        if (results_read(f->dir, (results_kind)k, &f->doc[k], why)) continue;
        if (k == RESULTS_WALK) *walk = *why;
        f->troubles++;
    }
}

// A text of the run; one that is there and cannot be read is told.
static char *text_of(facts *f, const char *name) {
    char *text;
    if (!run_read(f->dir, name, &text, &f->trouble[f->troubles])) f->troubles++;
    return text;
}

static void read_description(facts *f) {
    f->config = text_of(f, "config.yaml");
    value_of(f->config, "model.kind", f->model, sizeof f->model);
    value_of(f->config, "agent.env", f->agent, sizeof f->agent);
    value_of(f->config, "data.set", f->data, sizeof f->data);
    if (f->config && outline_has(f->config, "data.bars")) snprintf(f->data, sizeof f->data, "bars"); // before a set
    if (f->agent[0]) snprintf(f->data, sizeof f->data, "agent in %s", f->agent);
}

// A walk's plans and curves are its folds'.
static void read_run(facts *f) {
    char *db = run_path(f->dir, "run.db");
    f->plan = text_of(f, "plan.yaml");
    value_of(f->plan, "device", f->device, sizeof f->device);
    f->has_sum = read_db(f, db, &f->trouble[f->troubles]);
    if (!f->has_sum) f->troubles++;
    if (f->has_sum) f->status = run_status(f->dir, &f->sum);
    free(db);
}

// Walks

// Folds that a walk was begun with, as its run.db says; 0 where it says nothing.
static int64_t folds_asked(const char *dir) {
    char text[32] = "", *path = run_path(dir, "run.db");
    err unused;
    db_reader *db = db_reader_open(path, &unused);
    int64_t n = db && db_read_event(db, "folds", text, sizeof text, &unused) ? strtoll(text, NULL, 10) : 0;
    db_reader_close(db);
    free(path);
    return n;
}

static void note_fold(void *arg, const char *dir) {
    (void)dir;
    *(bool *)arg = true;
}

// `begun` becomes true where a walk has begun; shards leave folds alone.
static bool has_begun(const char *dir, bool *begun, err *e) {
    *begun = folds_asked(dir) > 0;
    return *begun || run_each_fold(dir, note_fold, begun, e);
}

static bool is_walk(const char *dir, bool *is, err *e) {
    char *path = run_path(dir, results_name(RESULTS_WALK));
    *is = access(path, F_OK) == 0;
    free(path);
    return *is || has_begun(dir, is, e);
}

static void count_done(void *arg, const char *dir) {
    facts *f = arg;
    db_summary sum;
    err unused;
    char *path = run_path(dir, "run.db");
    db_reader *db = db_reader_open(path, &unused);
    f->folds_done += db && db_read(db, &sum, &unused) && strcmp(sum.status, "done") == 0;
    db_reader_close(db);
    free(path);
}

// A walk that has no walk.json yet.
static void read_incomplete(facts *f) {
    f->folds = folds_asked(f->dir);
    if (!run_each_fold(f->dir, count_done, f, &f->trouble[f->troubles])) f->troubles++;
    f->status = "incomplete";
}

// False where the directory is neither a run's nor a walk's, or a walk's document is damaged.
static bool is_something(const facts *f, const err *walk, err *e) {
    bool begun;
    if (f->is_run || f->doc[RESULTS_WALK]) return true;
    if (walk->kind) {
        *e = *walk;
        return false;
    }
    if (!has_begun(f->dir, &begun, e)) return false;
    return begun ||
           err_input(e, "%s: is neither a run's directory (it has no config.yaml) nor a walk's (walk.json)", f->dir);
}

bool facts_open(facts *f, const char *dir, err *e) {
    *f = (facts){.dir = dir, .status = "", .memory_total = NAN, .monitor_start = NAN};
    bool walk;
    err document = {0};
    if (!is_walk(dir, &walk, e)) return false;
    f->is_run = run_is(dir) && !walk;
    read_documents(f, &document);
    if (!is_something(f, &document, e)) {
        facts_close(f);
        return false;
    }
    f->steps = trace_new();
    f->memory = trace_new();
    f->others = trace_new();
    f->utilisation = trace_new();
    read_description(f);
    if (f->is_run) read_run(f);
    if (!f->is_run && !f->doc[RESULTS_WALK]) read_incomplete(f);
    choose_part(f);
    choose_metric(f);
    return true;
}

void facts_close(facts *f) {
    for (int i = 0; i < f->curves; i++) trace_free(f->curve[i].values);
    for (int k = 0; k < RESULTS_KINDS; k++) json_decref(f->doc[k]);
    json_decref(f->best_confusion);
    trace_free(f->steps);
    trace_free(f->memory);
    trace_free(f->others);
    trace_free(f->utilisation);
    free(f->config);
    free(f->plan);
}

const trace *facts_curve(const facts *f, const char *part, const char *name) {
    for (int i = 0; i < f->curves; i++)
        if (strcmp(f->curve[i].part, part) == 0 && strcmp(f->curve[i].name, name) == 0) return f->curve[i].values;
    return NULL;
}

json_t *facts_part(const facts *f, const char *name) {
    return json_object_get(json_object_get(f->doc[RESULTS_EVALUATION], "parts"), name);
}

double facts_best(const facts *f, const char *part, const char *name) {
    for (int i = 0; i < f->curves; i++)
        if (strcmp(f->curve[i].part, part) == 0 && strcmp(f->curve[i].name, name) == 0) return f->curve[i].best;
    return NAN;
}

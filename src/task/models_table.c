#include "task/models_table.h"

#include "run/run.h"
#include "task/evaluation.h"
#include "task/members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Figures of training, from run.db

typedef struct {
    const model_run *of;
    double samples, seconds;
    double best, usual; // of the best epoch, on validation
} figures;

static void add_epoch(void *arg, const db_epoch_row *row) {
    figures *f = arg;
    f->samples += row->samples_per_s * row->seconds;
    f->seconds += row->seconds;
}

static void note_metric(void *arg, const char *part, const char *name, double value) {
    figures *f = arg;
    if (strcmp(part, "validation") != 0) return;
    if (strcmp(name, f->of->metric->name) == 0) f->best = value;
    if (strcmp(name, f->of->usual->name) == 0) f->usual = value;
}

// Adds the figures of a run; its summary is that of the last one. The file is this command's own, so that one which
// cannot be read is no mistake of the user's.
static bool add_run(figures *f, const char *dir, db_summary *sum, err *e) {
    char *path = run_path(dir, "run.db");
    db_reader *db = db_reader_open(path, e);
    bool ok = db && db_read(db, sum, e) && db_each_epoch(db, add_epoch, f, e) &&
              (!sum->best_epoch || db_read_metrics(db, sum->best_epoch, note_metric, f, e));
    db_reader_close(db);
    free(path);
    if (!ok) e->kind = ERR_RUN;
    return ok;
}

// A metric that run.db does not keep gives way to the usual one.
static json_t *best_json(const figures *f, const db_summary *sum) {
    bool kept = !isnan(f->best);
    return json_pack("{s:I, s:s, s:o}", "best_epoch", (json_int_t)sum->best_epoch, "metric",
        (kept ? f->of->metric : f->of->usual)->name, "validation", json_number(kept ? f->best : f->usual));
}

static bool read_figures(const model_run *r, json_t *to, err *e) {
    figures f = {.of = r, .best = NAN, .usual = NAN};
    db_summary sum;
    int members;
    bool ok = members_of(r->dir, &members, e) && (members || add_run(&f, r->dir, &sum, e));
    for (int k = 1; ok && k <= members; k++) {
        char *dir = members_dir(r->dir, k);
        ok = add_run(&f, dir, &sum, e);
        free(dir);
    }
    if (ok && !members) json_join(to, best_json(&f, &sum));
    if (ok) json_object_set_new(to, "samples_per_s", json_number(f.samples / f.seconds));
    return ok;
}

// The test

static json_t *test_json(const model_run *r, const evaluation *v) {
    const skill_table *t = &v->skill;
    json_t *to = json_pack("{s:s, s:I}", "part", v->t->part, "samples", (json_int_t)v->t->samples.count);
    for (int k = 0; k < t->rows; k++) {
        const skill_row *row = &t->group[0].row[k];
        bool has = row->best >= 0;
        if (strcmp(skill_name(row->metric), r->usual->name) != 0) continue;
        json_join(
            to, json_pack("{s:s, s:o, s:s?, s:o, s:o}", "metric", r->usual->name, "score", json_number(row->score),
                    "trivial", has ? trivial_name(t->trivial[row->best]) : NULL, "trivial_score",
                    json_number(has ? row->trivial[row->best] : NAN), "skill", json_number(row->skill)));
    }
    return to;
}

bool models_score(model_run *r, err *e) {
    trained t;
    evaluation v = {0};
    trained_options ask = {.run = r->dir,
        .dataset = r->options.data,
        .devices = r->options.devices,
        .version = r->options.version,
        .finished = true};
    if (!trained_open(&t, &ask, e)) return false;
    json_t *to = json_object();
    bool ok = read_figures(r, to, e) && evaluation_make(&v, &t, e);
    if (ok) json_object_set_new(to, "test", test_json(r, &v));
    if (ok) r->scores = json_incref(to);
    json_decref(to);
    evaluation_done(&v);
    trained_close(&t);
    return ok;
}

// The table

static const char *status_of(const model_run *r) {
    if (!r->begun) return "not begun";
    return !r->ok ? "failed" : r->stopped ? "stopped" : "done";
}

static bool same_part(const split_part *a, const split_part *b) {
    return a->count == b->count && a->spans == b->spans &&
           memcmp(a->span, b->span, (size_t)a->spans * sizeof *a->span) == 0;
}

json_t *models_table(const model_run *r, int count, bool interrupted) {
    bool same = true;
    json_t *rows = json_array();
    for (int i = 0; i < count; i++) {
        same &= same_part(&r[0].test, &r[i].test);
        json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "description", r[i].file, "directory", r[i].dir,
            "model", r[i].kind, "parameters", (json_int_t)r[i].plan.parameters, "status", status_of(&r[i]), "reason",
            r[i].begun && !r[i].ok ? r[i].why.text : "");
        if (r[i].scores) json_join(row, json_incref(r[i].scores));
        json_array_append_new(rows, row);
    }
    return json_pack("{s:b, s:b, s:o}", "interrupted", interrupted, "same_test", same, "models", rows);
}

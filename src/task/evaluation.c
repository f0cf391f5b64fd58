#include "task/evaluation.h"

#include "data/when.h"
#include "run/results.h"
#include "run/run.h"
#include "task/calibration.h"
#include "task/output.h"
#include "task/skill_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool evaluation_make(evaluation *v, trained *t, err *e) {
    *v = (evaluation){.t = t};
    if (!answers_make(&v->answers, t, e)) return false;
    const float *answer = v->answers.answer;
    if (t->task.job.forecasts) {
        v->series = calloc(1, sizeof *v->series);
        NEED(v->series, "out of memory for a score");
        return task_evaluate_forecasts(t, answer, v->series, &v->loss, &v->skill, e);
    }
    v->score = calloc(1, sizeof *v->score);
    NEED(v->score, "out of memory for a score");
    return task_evaluate(t, answer, v->score, &v->skill, e);
}

void evaluation_done(evaluation *v) {
    answers_done(&v->answers);
    skill_done(&v->skill);
    free(v->score);
    free(v->series);
    json_decref(v->importance);
}

// Figures

static json_t *metrics_json(const evaluation *v) {
    if (v->score)
        return json_pack("{s:o, s:o, s:o, s:o}", "loss", json_number(v->score->loss), "accuracy",
            json_number(v->score->accuracy), "mcc", json_number(v->score->mcc), "macro_f1",
            json_number(v->score->macro_f1));
    const series_score *s = v->series;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "loss", json_number(v->loss), "mae", json_number(series_mae(s)),
        "rmse", json_number(series_rmse(s)), "smape", json_number(series_smape(s)), "mase", json_number(series_mase(s)),
        "owa", json_number(series_owa(s)));
}

static json_t *time_json(const trained *t, int64_t at) {
    char text[32];
    const int64_t *time = t->task.data->time;
    return time ? json_string(when_text(text, sizeof text, time[part_sample(&t->samples, at)])) : json_null();
}

// Classes

json_t *evaluation_classes(const dataset *d) {
    char name[CLASS_NAME_ROOM];
    json_t *all = json_array();
    for (int k = 0; k < d->classes; k++) json_array_append_new(all, json_string(dataset_class_name(d, k, name)));
    return all;
}

json_t *evaluation_confusion(const int64_t *count, int K) {
    json_t *all = json_array();
    for (int i = 0; i < K; i++) {
        json_t *row = json_array();
        for (int k = 0; k < K; k++) json_array_append_new(row, json_integer((json_int_t)count[i * K + k]));
        json_array_append_new(all, row);
    }
    return all;
}

static void add_classes(const evaluation *v, json_t *to) {
    const dataset *d = v->t->task.data;
    json_object_set_new(to, "classes", evaluation_classes(d));
    json_object_set_new(to, "confusion", evaluation_confusion(v->score->confusion, d->classes));
}

json_t *evaluation_json(const evaluation *v) {
    const trained *t = v->t;
    calibration c = {0};
    json_t *part = json_pack("{s:I, s:o, s:o, s:o}", "samples", (json_int_t)t->samples.count, "from", time_json(t, 0),
        "to", time_json(t, t->samples.count - 1), "metrics", metrics_json(v));
    json_join(part, skill_json(&v->skill));
    if (v->score) add_classes(v, part);
    calibration_add(&c, &v->answers);
    calibration_put(&c, t->task.data, part);
    if (v->importance) json_object_set(part, "importance", v->importance);
    return part;
}

// The directory

// Importance that an earlier evaluation of the same weights has measured. False where that cannot be read now.
static bool keep_importance(json_t *part, const char *dir, const char *name, int64_t epoch, err *e) {
    json_t *doc;
    if (json_object_get(part, "importance")) return true;
    if (!results_read(dir, RESULTS_EVALUATION, &doc, e)) return e->kind != ERR_RUN;
    json_t *was = json_object_get(json_object_get(doc, "parts"), name), *importance = results_get(was, "importance");
    json_t *of = results_get(was, "epoch");
    if (importance && json_is_integer(of) && json_integer_value(of) == epoch)
        json_object_set(part, "importance", importance);
    json_decref(doc);
    return true;
}

// The epoch, where there is a run.db. False where that cannot be read now; `e` is filled, too, where it is damaged.
static bool add_epoch(json_t *part, const char *dir, const char *name, err *e) {
    db_summary sum;
    char *path = run_path(dir, "run.db");
    db_reader *db = access(path, F_OK) == 0 ? db_reader_open(path, e) : NULL;
    bool read = db && db_read(db, &sum, e), ok = read || e->kind != ERR_RUN;
    if (read && sum.best_epoch) {
        json_object_set_new(part, "epoch", json_integer((json_int_t)sum.best_epoch));
        ok = keep_importance(part, dir, name, sum.best_epoch, e);
    }
    db_reader_close(db);
    free(path);
    return ok;
}

bool evaluation_store_part(json_t *part, const char *dir, const char *name, err *e) {
    err why = {0};
    if (!add_epoch(part, dir, name, &why)) {
        *e = why;
        json_decref(part);
        return false;
    }
    bool ok = results_set(dir, RESULTS_EVALUATION, "parts", name, part, e);
    if (ok && why.kind != ERR_NONE) err_input(e, "its epoch: %s", why.text);
    return ok;
}

bool evaluation_store(const evaluation *v, const char *dir, err *e) {
    return evaluation_store_part(evaluation_json(v), dir, v->t->part, e);
}

char *evaluation_store_answers(const evaluation *v, const char *dir, err *e) {
    char name[64];
    snprintf(name, sizeof name, "predictions_%s.npz", v->t->part);
    char *path = run_path(dir, name);
    if (output_may_replace(path, OUTPUT_ANSWERS, NULL, 0, e) && answers_write_npz(&v->answers, path, e)) return path;
    free(path);
    return NULL;
}

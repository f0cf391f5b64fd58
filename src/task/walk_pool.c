#include "task/walk_pool.h"

#include "run/results.h"

#include <math.h>
#include <stdlib.h>

walk_pool *walk_pool_new(void) {
    walk_pool *p = calloc(1, sizeof *p);
    NEED(p, "out of memory for scores");
    return p;
}

void walk_pool_free(walk_pool *p) {
    json_decref(p->importance);
    free(p);
}

// Sums

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

static void add_sums(walk_pool *p, const skill_table *t) {
    const skill_group *all = &t->group[0];
    p->rows = t->rows;
    p->samples += all->samples;
    for (int k = 0; k < t->rows; k++) {
        const skill_row *r = &all->row[k];
        p->metric[k] = r->metric;
        p->score[k] += to_sum(r->metric, r->score, all->samples);
        p->trivial[k] += to_sum(r->metric, best_trivial(r), all->samples);
    }
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

void walk_pool_add(walk_pool *p, const evaluation *v, json_t *fold) {
    int K = v->score ? v->t->task.data->classes : 0;
    p->folds++;
    p->classes = K;
    add_sums(p, &v->skill);
    calibration_add(&p->calibration, &v->answers);
    for (int i = 0; i < K * K; i++) p->confusion[i] += v->score->confusion[i];
    add_fold_scores(fold, &v->skill);
    if (K) json_object_set_new(fold, "confusion", evaluation_confusion(v->score->confusion, K));
}

// MCC is of the joint confusion matrix; that of trivial answers is 0 within a fold, and so it is here.
static void add_pooled(json_t *to, const walk_pool *p) {
    double score[SKILL_ROWS_MOST], trivial[SKILL_ROWS_MOST];
    for (int k = 0; k < p->rows; k++) {
        skill_metric m = p->metric[k];
        score[k] = m == SKILL_MCC ? metric_mcc(p->confusion, p->classes) : from_sum(m, p->score[k], p->samples);
        trivial[k] = from_sum(m, p->trivial[k], p->samples);
    }
    add_scores(to, p->rows, p->metric, score, trivial);
}

// Importance

static json_t *column_of(const json_t *one) {
    json_t *to = json_object();
    static const char *const keys[] = {"stream", "column", "metric"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) json_object_set(to, keys[k], json_object_get(one, keys[k]));
    json_object_set_new(to, "drops", json_array());
    return to;
}

void walk_pool_add_importance(walk_pool *p, const json_t *list) {
    bool first = !p->importance;
    if (first) p->importance = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (first) json_array_append_new(p->importance, column_of(one));
        json_t *drops = json_object_get(json_array_get(p->importance, i), "drops");
        json_array_append(drops, json_object_get(one, "drop"));
    }
}

// A fold in which the score has no value counts for none.
static void put_drops(const json_t *drops, json_t *to) {
    double sum = 0, low = NAN, high = NAN;
    int folds = 0;
    for (size_t i = 0; i < json_array_size(drops); i++) {
        double drop = results_number(json_array_get(drops, i));
        if (isnan(drop)) continue;
        folds++;
        sum += drop;
        low = fmin(low, drop);
        high = fmax(high, drop);
    }
    json_join(to, json_pack("{s:o, s:o, s:o, s:i}", "drop", json_number(sum / folds), "low", json_number(low), "high",
                      json_number(high), "folds", folds));
}

static json_t *importance_json(const walk_pool *p) {
    json_t *all = json_array(), *one;
    size_t i;
    json_array_foreach(p->importance, i, one) {
        json_t *to = json_copy(one);
        json_object_del(to, "drops");
        put_drops(json_object_get(one, "drops"), to);
        json_array_append_new(all, to);
    }
    return all;
}

void walk_pool_put(const walk_pool *p, const dataset *d, json_t *doc) {
    if (!p->folds) return;
    add_pooled(doc, p);
    if (p->classes) {
        json_object_set_new(doc, "classes", evaluation_classes(d));
        json_object_set_new(doc, "confusion", evaluation_confusion(p->confusion, p->classes));
    }
    calibration_put(&p->calibration, d, doc);
    if (p->importance) json_object_set_new(doc, "importance", importance_json(p));
}

#include "task/skill_json.h"

#include <math.h>

const char *skill_verdict_name(skill_verdict v) {
    static const char *const names[] = {"", "better", "no better", "worse"};
    return names[v];
}

static json_t *range_json(interval r) {
    return isnan(r.low) ? json_null() : json_pack("[o, o]", json_number(r.low), json_number(r.high));
}

static json_t *row_json(const skill_table *t, const skill_row *r) {
    bool has = r->best >= 0;
    skill_verdict v = skill_judge(r);
    return json_pack("{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:s, s:s?}", "metric", skill_name(r->metric), "score",
        json_number(r->score), "interval", range_json(r->score_range), "trivial",
        has ? trivial_name(t->trivial[r->best]) : NULL, "trivial_score", json_number(has ? r->trivial[r->best] : NAN),
        "skill", json_number(r->skill), "skill_interval", range_json(r->skill_range), "skill_is",
        skill_differs(r->metric) ? "score - trivial" : "1 - score / trivial", "verdict",
        v == SKILL_OPEN ? NULL : skill_verdict_name(v));
}

static json_t *rows_json(const skill_table *t, const skill_group *g) {
    json_t *all = json_array();
    for (int k = 0; k < t->rows; k++) json_array_append_new(all, row_json(t, &g->row[k]));
    return all;
}

json_t *skill_trivial_json(const skill_table *t) {
    json_t *all = json_object();
    for (int k = 0; k < t->trivials; k++) {
        json_t *one = json_object();
        for (int i = 0; i < t->rows; i++) {
            const skill_row *r = &t->group[0].row[i];
            if (!isnan(r->trivial[k])) json_object_set_new(one, skill_name(r->metric), json_number(r->trivial[k]));
        }
        json_object_set_new(all, trivial_name(t->trivial[k]), one);
    }
    return all;
}

json_t *skill_json(const skill_table *t) {
    json_t *all = json_pack("{s:o, s:o, s:{s:i, s:I, s:I, s:s}}", "scores", rows_json(t, &t->group[0]), "trivial",
        skill_trivial_json(t), "bootstrap", "resamples", BOOTSTRAP_RESAMPLES, "block", (json_int_t)t->block, "units",
        (json_int_t)t->units, "unit", t->series ? "series" : "moment");
    if (t->groups == 1) return all;
    json_t *symbols = json_array();
    for (int i = 1; i < t->groups; i++)
        json_array_append_new(symbols, json_pack("{s:s, s:I, s:o}", "symbol", t->group[i].name, "samples",
                                           (json_int_t)t->group[i].samples, "scores", rows_json(t, &t->group[i])));
    json_object_set_new(all, "symbols", symbols);
    return all;
}

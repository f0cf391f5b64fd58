#include "cli/skill.h"

#include "base/term.h"
#include "task/lines.h"

#include <math.h>
#include <string.h>

// Numbers

enum { TEXT = 48 };

static const char *score_text(skill_metric m, double v, char text[TEXT]) {
    return isnan(v) ? "-" : skill_figure(m, v, text, TEXT);
}

static const char *range_text(skill_metric m, interval r, char text[TEXT]) {
    char low[TEXT], high[TEXT];
    if (isnan(r.low)) return "-";
    snprintf(text, TEXT, "%.20s to %.20s", score_text(m, r.low, low), score_text(m, r.high, high));
    return text;
}

static const char *skill_text(double v, char text[TEXT]) {
    if (isnan(v)) return "-";
    snprintf(text, TEXT, "%+.4f", v);
    return text;
}

static const char *skill_range(interval r, char text[TEXT]) {
    if (isnan(r.low)) return "-";
    snprintf(text, TEXT, "%+.4f to %+.4f", r.low, r.high);
    return text;
}

// Text

static void print_rows(const skill_table *t, const skill_group *g, FILE *out) {
    char a[TEXT], b[TEXT], c[TEXT], d[TEXT], f[TEXT];
    fprintf(out, "\n%-9s %10s  %-22s %10s  %-15s %8s  %s\n", "", "score", "95 % interval", "trivial", "", "skill",
        "95 % interval");
    for (int k = 0; k < t->rows; k++) {
        const skill_row *r = &g->row[k];
        bool has = r->best >= 0;
        fprintf(out, "%-9s %10s  %-22s %10s  %-15s %8s  %s\n", skill_title(r->metric),
            score_text(r->metric, r->score, a), range_text(r->metric, r->score_range, b),
            score_text(r->metric, has ? r->trivial[r->best] : NAN, c), has ? trivial_title(t->trivial[r->best]) : "",
            skill_text(r->skill, d), skill_range(r->skill_range, f));
    }
}

static const char *const verdicts[] = {"", "better", "no better", "worse"};

// Metrics of one verdict, in one line.
static void print_verdict(const skill_table *t, skill_verdict of, const char *words, FILE *out) {
    int n = 0;
    for (int k = 0; k < t->rows; k++)
        if (skill_judge(&t->group[0].row[k]) == of)
            fprintf(out, "%s%s", n++ ? ", " : "", skill_title(t->group[0].row[k].metric));
    if (n) fprintf(out, ": %s\n", words);
}

// Figures of an instrument: its scores, then the skill of the first row and its interval.
static void print_instruments(const skill_table *t, FILE *out) {
    char a[TEXT], b[TEXT];
    const skill_row *first = t->group[0].row;
    fprintf(out, "\n%-12s %10s", "symbol", "samples");
    for (int k = 0; k < t->rows; k++) fprintf(out, " %10s", skill_title(first[k].metric));
    fprintf(out, " %10s  95 %% interval (skill by %s)\n", "skill", skill_title(first[0].metric));
    for (int i = 0; i < t->groups; i++) {
        const skill_group *g = &t->group[i == t->groups - 1 ? 0 : i + 1];
        term_count(a, sizeof a, (double)g->samples);
        fprintf(out, "%-12.40s %10s", g->name ? g->name : "together", a);
        for (int k = 0; k < t->rows; k++) fprintf(out, " %10s", score_text(g->row[k].metric, g->row[k].score, a));
        fprintf(out, " %10s  %-20s %s\n", skill_text(g->row[0].skill, a), skill_range(g->row[0].skill_range, b),
            verdicts[skill_judge(&g->row[0])]);
    }
}

static void print_method(const skill_table *t, FILE *out) {
    char n[32];
    term_count(n, sizeof n, BOOTSTRAP_RESAMPLES);
    bool classes = skill_differs(t->group[0].row[1].metric);
    fprintf(out, "skill     1 - score / trivial%s\n",
        classes ? " of log loss; score - trivial of accuracy and MCC; 0: as good as the trivial answer"
                : "; 1: perfect, 0: as good as the trivial answer");
    const char *unit = t->series ? "series" : "moment";
    if (t->units < 2 * t->block)
        fprintf(out, "intervals none: %lld %s%s are fewer than two blocks of %lld\n", (long long)t->units, unit,
            t->series ? "" : "s", (long long)t->block);
    else
        fprintf(out, "intervals by %s resamples, in blocks of %lld %s%s\n", n, (long long)t->block, unit,
            t->series || t->block == 1 ? "" : "s");
}

void skill_print(const skill_table *t, const dataset *d, FILE *out) {
    char line[LINE_ROOM];
    lines_trivial(t, d, line, sizeof line);
    fprintf(out, "trivial   %s\n", line);
    print_method(t, out);
    print_rows(t, &t->group[0], out);
    print_verdict(t, SKILL_BETTER, "better than the trivial answer on these rows", out);
    print_verdict(t, SKILL_EQUAL, "no better than the trivial answer on these rows", out);
    print_verdict(t, SKILL_WORSE, "worse than the trivial answer on these rows", out);
    if (t->groups > 1) print_instruments(t, out);
}

// JSON

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
        v == SKILL_OPEN ? NULL : verdicts[v]);
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

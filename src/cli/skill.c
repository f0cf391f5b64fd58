#include "cli/skill.h"

#include "base/term.h"
#include "task/lines.h"
#include "task/skill_json.h"

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
            skill_verdict_name(skill_judge(&g->row[0])));
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

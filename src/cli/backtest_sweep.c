#include "cli/backtest_sweep.h"

#include "backtest/backtest.h"
#include "base/term.h"
#include "cli/ask.h"
#include "cli/backtest_tell.h"
#include "task/sweep_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 40 };

static int list_axes(const cli_options *o, const char *to[OWN_MOST]) {
    int n = 0;
    for (int i = 0; i < o->owns; i++)
        if (strcmp(o->own[i].name, "--sweep") == 0) to[n++] = o->own[i].value;
    return n;
}

bool backtest_sweeps(const cli_options *o) {
    const char *axis[OWN_MOST];
    return list_axes(o, axis) > 0;
}

// Lines before the table

static void add_bars(assumptions *to, const char *name, const sweep *s) {
    char n[SHOWN], first[SHOWN], last[SHOWN];
    term_count(n, sizeof n, (double)s->bars);
    assumptions_add(to, "bars", "%s: %s from %s to %s", name, n, when_text(first, sizeof first, s->from),
        when_text(last, sizeof last, s->to));
}

static void add_run(assumptions *to, const backtest_swept *w, const swept *s) {
    char name[400], n[SHOWN];
    snprintf(name, sizeof name, "%s%s%s", s->data, s->symbol[0] ? ", " : "", s->symbol);
    add_bars(to, name, &s->all);
    term_count(n, sizeof n, (double)s->scores);
    assumptions_add(to, "answers", "%s of %s, part %s", n, w->run.run.run, s->part);
    for (int i = 0; i < s->warnings; i++) assumptions_add(to, "warning", "%s", s->warning[i]);
    if (strcmp(s->part, "test") == 0)
        assumptions_add(to, "warning",
            "a setting that is chosen by this table is fitted to the test part, which then tests nothing any more; "
            "choose on validation, which is the default");
    else if (strcmp(s->part, "train") == 0)
        assumptions_add(
            to, "warning", "the model was trained on this part; choose on validation, which is the default");
    else
        assumptions_add(to, "next",
            "try the chosen setting once on the test part: `tradewind backtest %s KEY=VALUE...`", w->run.run.run);
}

static void add_signals(assumptions *to, const backtest_swept *w, const sweep *s) {
    add_bars(to, w->bars, s);
    assumptions_add(to, "signals", "%s", w->signals);
    assumptions_add(to, "warning",
        "the best of several settings is chosen with hindsight; try it on bars that this table has not seen");
}

static void add_doubt(assumptions *to, const sweep *s, const char *trials) {
    const overfit *f = &s->overfit;
    char choices[SHOWN];
    assumptions_add(to, "trials", "%.0f, %s", s->trials, s->trials_given ? "as report.trials says" : trials);
    term_count(choices, sizeof choices, (double)f->choices);
    if (s->no_overfit[0])
        assumptions_add(to, "overfit", "not known: %s", s->no_overfit);
    else
        assumptions_add(to, "overfit",
            "%.1f %%: probability of backtest overfitting, the share of %s choices of half the days whose best setting "
            "is no better than the median on the other half; in %.1f %% it loses there",
            100 * f->probability, choices, 100 * f->loss);
}

// The table

static const stat_name columns[] = {
    STAT_SHARPE, STAT_RETURN, STAT_DRAWDOWN, STAT_TRADES, STAT_WIN_RATE, STAT_COSTS, STAT_DSR};

enum { COLUMNS = sizeof columns / sizeof *columns, FIGURE = 10 };

static int width_of(const grid *g, int axis) {
    size_t most = strlen(g->axis[axis].key);
    for (int64_t k = 0; k < g->axis[axis].count; k++) {
        size_t n = strlen(strchr(g->axis[axis].word[k], '=') + 1);
        if (n > most) most = n;
    }
    return (int)most;
}

static bool has_fitted(const sweep *s) {
    for (int64_t k = 0; k < s->count; k++)
        if (!isnan(s->row[k].fitted)) return true;
    return false;
}

static void print_head(const sweep *s, const grid *g) {
    putchar('\n');
    for (int i = 0; i < g->axes; i++) printf("%-*s  ", width_of(g, i), g->axis[i].key);
    if (has_fitted(s)) printf("%*s  ", FIGURE, "threshold");
    for (int i = 0; i < COLUMNS; i++) {
        const char *label = columns[i] == STAT_DRAWDOWN ? "drawdown"
                            : columns[i] == STAT_DSR    ? "deflated"
                                                        : stats_row(columns[i])->label;
        printf("%*s%s", FIGURE, label, i + 1 < COLUMNS ? "  " : "\n");
    }
}

static void print_row(const sweep *s, const grid *g, int64_t k) {
    const sweep_row *r = &s->row[k];
    for (int i = 0; i < g->axes; i++) printf("%-*s  ", width_of(g, i), grid_value(g, k, i));
    if (r->why[0]) {
        printf("not traded: %s\n", r->why);
        return;
    }
    if (has_fitted(s) && isnan(r->fitted)) printf("%*s  ", FIGURE, "as given");
    if (has_fitted(s) && !isnan(r->fitted)) printf("%*.6g  ", FIGURE, r->fitted);
    for (int i = 0; i < COLUMNS; i++) {
        char figure[160];
        bool none = r->stats.of[columns[i]].why != NULL;
        printf("%*s%s", FIGURE, none ? "-" : stats_figure(&r->stats, columns[i], figure, sizeof figure),
            i + 1 < COLUMNS ? "  " : "\n");
    }
}

// JSON

static json_t *row_json(const sweep *s, const grid *g, int64_t k) {
    const sweep_row *r = &s->row[k];
    json_t *set = json_object();
    for (int i = 0; i < g->axes; i++) json_object_set_new(set, g->axis[i].key, json_string(grid_value(g, k, i)));
    json_t *one = json_pack("{s:o}", "setting", set);
    if (!isnan(r->fitted)) json_object_set_new(one, "threshold", json_number(r->fitted));
    if (r->why[0])
        json_object_set_new(one, "not_traded", json_string(r->why));
    else
        json_join(one, stats_json(&r->stats));
    return one;
}

static void tell_json(const sweep *s, const grid *g, const assumptions *a) {
    json_t *rows = json_array(), *keys = json_array();
    bool known = !s->no_overfit[0];
    for (int i = 0; i < g->axes; i++) json_array_append_new(keys, json_string(g->axis[i].key));
    for (int64_t k = 0; k < s->count; k++) json_array_append_new(rows, row_json(s, g, s->order[k]));
    json_t *line = json_pack("{s:o, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sweep", keys, "bars",
        (json_int_t)s->bars, "not_traded", (json_int_t)(s->count - s->traded), "trials", s->trials, "trial_variance",
        json_number(s->variance), "pbo", json_number(known ? s->overfit.probability : (double)NAN), "pbo_loss",
        json_number(known ? s->overfit.loss : (double)NAN), "pbo_logit",
        json_number(known ? s->overfit.logit : (double)NAN), "pbo_choices",
        known ? json_integer((json_int_t)s->overfit.choices) : json_null(), "assumptions", assumptions_json(a),
        "settings", rows);
    json_line(stdout, line);
}

static void tell(const sweep *s, const grid *g, const assumptions *a, const cli_options *o) {
    if (o->json) {
        tell_json(s, g, a);
        return;
    }
    backtest_tell_assumptions(a, o->quiet);
    print_head(s, g);
    for (int64_t k = 0; k < s->count; k++) print_row(s, g, s->order[k]);
}

// All

static bool sweep_signals(const backtest_swept *w, const grid *g, pool *p, const cli_options *o, err *e) {
    backtest_options as = {w->signals, w->bars, w->run.run.overrides, w->run.run.override_count};
    assumptions lines = {0};
    sweep s;
    if (!backtest_sweep(&s, &as, g, p, e)) return false;
    add_signals(&lines, w, &s);
    add_doubt(&lines, &s, "the settings");
    tell(&s, g, &lines, o);
    sweep_done(&s);
    return true;
}

static bool sweep_answers(const backtest_swept *w, const grid *g, pool *p, const cli_options *o, err *e) {
    backtest_run_options as = w->run;
    assumptions lines = {0};
    swept s;
    if (!ask_devices(o, &as.run.devices, e) || !sweep_run(&s, &as, g, p, e)) return false;
    add_run(&lines, w, &s);
    add_doubt(&lines, &s.all, "the settings, and runs beside this one on the same data");
    tell(&s.all, g, &lines, o);
    sweep_run_done(&s);
    return true;
}

bool backtest_sweep_tell(const backtest_swept *w, const cli_options *o, err *e) {
    const char *axis[OWN_MOST];
    grid g;
    pool *p = NULL;
    int axes = list_axes(o, axis);
    bool ok = grid_read(&g, axis, axes, e) && (p = pool_new(o->threads, e));
    ok = ok && (w->signals ? sweep_signals(w, &g, p, o, e) : sweep_answers(w, &g, p, o, e));
    pool_free(p);
    grid_done(&g);
    return ok;
}

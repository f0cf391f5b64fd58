#include "cli/backtest_paths.h"

#include "base/term.h"
#include "cli/backtest_tell.h"

#include <math.h>
#include <stdio.h>

void backtest_paths_add(assumptions *to, const backtested_walk *w) {
    assumptions_add(
        to, "paths", "%d: each is all of the data in an account of its own, group by group by another fold", w->paths);
    assumptions_add(to, "warning",
        "folds are trained on data behind their tests too, so that nobody could have traded a path: paths show how far "
        "results lie apart, not what would have been earned");
    for (int p = 0; p < w->paths; p++) {
        const backtest_path *of = &w->path[p];
        if (of->traded < of->groups)
            assumptions_add(to, "missing", "path %d has no answers for %lld of its %lld groups", p + 1,
                (long long)(of->groups - of->traded), (long long)of->groups);
    }
}

// The table

enum { NAME = 20, CELL = 17 };

static void print_cell(stat_name k, double v) {
    char text[160];
    stats one = {0};
    one.of[k] = (stat_value){.value = v};
    printf("%*s", CELL, isnan(v) ? "-" : stats_figure(&one, k, text, sizeof text));
}

typedef double value_of(const backtested_walk *w, int path, stat_name k);

static double of_path(const backtested_walk *w, int path, stat_name k) {
    return w->path[path].stats.of[k].value;
}

static double mean_of(const backtested_walk *w, int path, stat_name k) {
    (void)path;
    return backtest_spread_of(w, k).mean;
}

static double deviation_of(const backtested_walk *w, int path, stat_name k) {
    (void)path;
    return backtest_spread_of(w, k).deviation;
}

static double low_of(const backtested_walk *w, int path, stat_name k) {
    (void)path;
    return backtest_spread_of(w, k).low;
}

static double high_of(const backtested_walk *w, int path, stat_name k) {
    (void)path;
    return backtest_spread_of(w, k).high;
}

static void print_row(const char *name, const backtested_walk *w, int path, value_of *value) {
    printf("%-*s", NAME, name);
    for (const stat_name *k = backtest_path_stats; *k != STATS_COUNT; k++) print_cell(*k, value(w, path, *k));
    putchar('\n');
}

void backtest_paths_tell(const backtested_walk *w, const assumptions *a, const cli_options *o) {
    char name[32];
    backtest_tell_assumptions(a, o->quiet);
    printf("\n%-*s", NAME, "path");
    for (const stat_name *k = backtest_path_stats; *k != STATS_COUNT; k++) printf("%*s", CELL, stats_row(*k)->label);
    putchar('\n');
    for (int p = 0; p < w->paths; p++) {
        snprintf(name, sizeof name, "%d", p + 1);
        print_row(name, w, p, of_path);
    }
    print_row("mean", w, 0, mean_of);
    print_row("standard deviation", w, 0, deviation_of);
    print_row("least", w, 0, low_of);
    print_row("largest", w, 0, high_of);
}

// JSON

json_t *backtest_paths_json(const backtested_walk *w) {
    json_t *paths = json_array(), *spread = json_object();
    for (int p = 0; p < w->paths; p++) {
        json_t *one = json_pack("{s:i, s:O}", "number", p + 1, "folds", w->path[p].folds);
        json_join(one, stats_json(&w->path[p].stats));
        json_array_append_new(paths, one);
    }
    for (const stat_name *k = backtest_path_stats; *k != STATS_COUNT; k++) {
        backtest_spread s = backtest_spread_of(w, *k);
        json_object_set_new(spread, stats_row(*k)->key,
            json_pack("{s:i, s:o, s:o, s:o, s:o}", "paths", s.paths, "mean", json_number(s.mean), "deviation",
                json_number(s.deviation), "low", json_number(s.low), "high", json_number(s.high)));
    }
    return json_pack("{s:o, s:o}", "paths", paths, "spread", spread);
}

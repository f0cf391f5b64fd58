// A backtest of a walk as its document, and how far the paths of a combinatorial one lie apart.
#include "run/results.h"
#include "task/backtest_walk.h"

#include <math.h>
#include <stdio.h>

const stat_name backtest_path_stats[] = {
    STAT_RETURN, STAT_CAGR, STAT_SHARPE, STAT_DRAWDOWN, STAT_TRADES, STAT_EQUITY_FINAL, STATS_COUNT};

backtest_spread backtest_spread_of(const backtested_walk *w, stat_name k) {
    backtest_spread s = {.mean = NAN, .deviation = NAN, .low = NAN, .high = NAN};
    double sum = 0, square = 0;
    for (int p = 0; p < w->paths; p++) {
        double v = w->path[p].stats.of[k].value;
        if (isnan(v)) continue;
        s.paths++;
        sum += v;
        s.low = fmin(s.low, v);
        s.high = fmax(s.high, v);
    }
    if (!s.paths) return s;
    s.mean = sum / s.paths;
    for (int p = 0; p < w->paths; p++) {
        double off = w->path[p].stats.of[k].value - s.mean;
        if (!isnan(off)) square += off * off;
    }
    if (s.paths > 1) s.deviation = sqrt(square / (s.paths - 1));
    return s;
}

// Rows of the statistics: the mean over the paths, with the least and the largest as its range.
static json_t *spreads_json(const backtested_walk *w) {
    json_t *all = json_array();
    for (const stat_name *k = backtest_path_stats; *k != STATS_COUNT; k++) {
        const stat_row *row = stats_row(*k);
        backtest_spread s = backtest_spread_of(w, *k);
        char label[64], text[600], deviation[160] = "";
        stats apart = {0};
        apart.of[*k].value = s.deviation;
        if (!isnan(s.deviation)) stats_figure(&apart, *k, deviation, sizeof deviation);
        snprintf(label, sizeof label, "%s, mean of paths", row->label);
        snprintf(text, sizeof text, "mean over %d paths, from the least to the largest%s%s; %s", s.paths,
            *deviation ? ", standard deviation " : "", deviation, row->definition);
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o}", "key", row->key, "label", label,
                                       "unit", document_unit(*k), "value", document_figure(*k, s.mean), "definition",
                                       text, "low", document_figure(*k, s.low), "high", document_figure(*k, s.high)));
    }
    return all;
}

static json_t *path_json(const backtest_path *p, int number) {
    json_t *one = json_pack("{s:i, s:O}", "number", number, "folds", p->folds);
    for (const stat_name *k = backtest_path_stats; *k != STATS_COUNT; k++)
        json_object_set_new(one, stats_row(*k)->key, document_figure(*k, p->stats.of[*k].value));
    json_object_set_new(one, "missing", json_integer((json_int_t)(p->groups - p->traded)));
    json_join(one, json_incref(p->curve));
    return one;
}

static json_t *paths_document(const backtested_walk *w, const assumptions *a) {
    json_t *paths = json_array();
    for (int p = 0; p < w->paths; p++) json_array_append_new(paths, path_json(&w->path[p], p + 1));
    return json_pack(
        "{s:o, s:o, s:o}", "assumptions", assumptions_json(a), "statistics", spreads_json(w), "paths", paths);
}

bool backtest_walk_store(const backtested_walk *w, const assumptions *a, const char *dir, err *e) {
    json_t *doc = w->paths ? paths_document(w, a) : document_make(a, &w->all.replay, &w->all.stats);
    return results_write(dir, RESULTS_BACKTEST, doc, e);
}

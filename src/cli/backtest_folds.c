#include "cli/backtest_folds.h"

#include "base/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LISTED_MOST = 12, MISSING_MOST = 3 };

static bool is_traded(const backtest_fold *f) {
    return !f->why[0];
}

// True for the first place of a fold that is traded: in a path of the combinatorial scheme one may stand in several.
static bool is_new(const backtested_walk *w, const backtest_fold *f) {
    for (const backtest_fold *k = w->fold; k < f; k++)
        if (is_traded(k) && k->number == f->number) return false;
    return is_traded(f);
}

static int64_t count_folds(const backtested_walk *w) {
    int64_t n = 0;
    for (int64_t i = 0; i < w->count; i++) n += is_new(w, &w->fold[i]);
    return n;
}

static const backtest_fold *first_of(const backtested_walk *w) {
    const backtest_fold *f = w->fold;
    while (!is_traded(f)) f++;
    return f;
}

static const backtest_fold *last_of(const backtested_walk *w) {
    const backtest_fold *f = w->fold + w->count - 1;
    while (!is_traded(f)) f--;
    return f;
}

// "fold 3 0.51, fold 4 0.55"; of many folds the first, the last and the range.
static void thresholds_text(const backtested_walk *w, char *text, size_t room) {
    const backtest_fold *first = first_of(w), *last = last_of(w);
    double low = INFINITY, high = -INFINITY;
    size_t n = 0;
    int64_t folds = count_folds(w);
    for (const backtest_fold *f = first; f <= last; f++) {
        if (!is_new(w, f)) continue;
        low = fmin(low, f->rule.rule.threshold);
        high = fmax(high, f->rule.rule.threshold);
        if (folds <= LISTED_MOST && n < room)
            n += (size_t)snprintf(
                text + n, room - n, "%sfold %lld %.6g", n ? ", " : "", (long long)f->number, f->rule.rule.threshold);
    }
    if (folds > LISTED_MOST)
        snprintf(text, room, "fold %lld %.6g, fold %lld %.6g, all between %.6g and %.6g", (long long)first->number,
            first->rule.rule.threshold, (long long)last->number, last->rule.rule.threshold, low, high);
}

static void add_fitted(assumptions *to, const backtested_walk *w) {
    char text[ASSUMPTION_ROOM];
    int64_t earned = 0;
    for (int64_t i = 0; i < w->count; i++) earned += is_new(w, &w->fold[i]) && w->fold[i].rule.fitted.result > 0;
    thresholds_text(w, text, sizeof text);
    assumptions_add(to, "fitted", "threshold on each fold's own validation: %s", text);
    assumptions_add(to, "fitted", "%lld of %lld thresholds earned their costs on validation", (long long)earned,
        (long long)count_folds(w));
}

static void add_missing(assumptions *to, const backtested_walk *w) {
    int64_t missing = w->count - w->traded, told = 0;
    for (int64_t i = 0; i < w->count && told < MISSING_MOST; i++) {
        if (is_traded(&w->fold[i])) continue;
        told++;
        assumptions_add(to, "missing", "fold %lld, so that its rows have no answers: %s", (long long)w->fold[i].number,
            w->fold[i].why);
    }
    if (missing > told)
        assumptions_add(to, "missing", "%lld more fold%s", (long long)(missing - told), term_s(missing - told));
}

void backtest_folds_add(assumptions *to, const backtested_walk *w) {
    const rule_record *r = &first_of(w)->rule;
    char text[400];
    add_missing(to, w);
    if (w->all.agent) return;
    decide_text(&r->rule, text, sizeof text);
    assumptions_add(to, "signal", "%s%s", r->was_fitted ? "in the first fold " : "", text);
    if (r->was_fitted) add_fitted(to, w);
}

#include "backtest/sweep.h"

#include "backtest/daily.h"
#include "backtest/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A setting's part of the work: nothing of it is touched by another thread.
typedef struct {
    daily daily;
    err why;
} outcome;

typedef struct {
    sweep *to;
    sweep_fn *play;
    void *arg;
    outcome *of; // [count]
} work;

static void play_one(void *arg, int64_t k, int worker) {
    (void)worker;
    work *w = arg;
    outcome *is = &w->of[k];
    sweep_play p = {.fitted = NAN};
    judge_options how = {.trials = w->to->trials, .brief = true};
    bool ok = w->play(w->arg, k, &p, &is->why) && judge(&p.replay, &p.terms, &how, &w->to->row[k].stats, &is->why) &&
              judge_daily(&p.replay, &is->daily, &is->why);
    w->to->row[k].fitted = p.fitted;
    if (!ok)
        snprintf(w->to->row[k].why, sizeof w->to->row[k].why, "%.*s", (int)sizeof w->to->row[k].why - 1, is->why.text);
    replay_done(&p.replay);
}

// The order

static double rank_of(const sweep_row *r) {
    if (r->why[0]) return -INFINITY;
    double sharpe = r->stats.of[STAT_SHARPE].value;
    return isfinite(sharpe) ? sharpe : -1e300;
}

static int by_rank(const void *a, const void *b, void *rows) {
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    double x = rank_of((const sweep_row *)rows + i), y = rank_of((const sweep_row *)rows + k);
    return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

// Doubt

static double variance_of(const sweep *s) {
    double sum = 0, square = 0, n = 0, first = NAN;
    for (int64_t k = 0; k < s->count; k++) {
        double x = s->row[k].why[0] ? (double)NAN : s->row[k].stats.of[STAT_SHARPE].value;
        if (!isfinite(x)) continue;
        if (isnan(first)) first = x;
        sum += x - first;
        square += (x - first) * (x - first);
        n++;
    }
    return n > 1 ? fmax(0, square - sum * sum / n) / (n - 1) : (double)NAN;
}

// Daily returns of the settings that have them as one table. Settings have the same bars, and so the same days.
static bool measure_overfit(sweep *s, const work *w, err *e) {
    int64_t trials = 0, days = 0, at = 0;
    err why = {0};
    for (int64_t k = 0; k < s->count; k++) {
        trials += w->of[k].daily.backs > 0;
        if (w->of[k].daily.backs) days = w->of[k].daily.backs;
    }
    double *back = malloc((size_t)(days * trials + 1) * sizeof *back);
    if (!back) return err_run(e, "no memory for the daily returns of %lld settings", (long long)trials);
    for (int64_t k = 0; k < s->count; k++) {
        const daily *d = &w->of[k].daily;
        if (!d->backs) continue;
        for (int64_t i = 0; i < days; i++) back[i * trials + at] = d->back[i];
        at++;
    }
    bool ok = overfit_make(back, days, trials, OVERFIT_BLOCKS, &s->overfit, &why);
    free(back);
    if (!ok) snprintf(s->no_overfit, sizeof s->no_overfit, "%.*s", (int)sizeof s->no_overfit - 1, why.text);
    if (why.kind == ERR_RUN) *e = why;
    return why.kind != ERR_RUN;
}

static bool doubt(sweep *s, const work *w, err *e) {
    if (!measure_overfit(s, w, e)) return false;
    s->variance = variance_of(s);
    for (int64_t k = 0; k < s->count; k++)
        if (!s->row[k].why[0])
            stats_of_trials(&s->row[k].stats, s->variance, s->no_overfit[0] ? NULL : &s->overfit, s->no_overfit);
    return true;
}

// All

// False where memory was short, or where no setting was traded.
static bool settle(sweep *s, const work *w, err *e) {
    for (int64_t k = 0; k < s->count; k++) {
        const err *why = &w->of[k].why;
        s->traded += !s->row[k].why[0];
        if (why->kind != ERR_RUN) continue;
        *e = *why;
        return false;
    }
    if (!s->traded) return err_input(e, "no setting could be traded; the first: %.900s", w->of[0].why.text);
    return doubt(s, w, e);
}

bool sweep_make(sweep *s, int64_t count, double trials, sweep_fn *play, void *arg, pool *p, err *e) {
    CHECK(count > 0 && trials >= 1, "%lld settings, %g trials", (long long)count, trials);
    *s = (sweep){.count = count,
        .trials = trials,
        .row = calloc((size_t)count, sizeof *s->row),
        .order = calloc((size_t)count, sizeof *s->order)};
    work w = {s, play, arg, calloc((size_t)count, sizeof *w.of)};
    bool ok = (s->row && s->order && w.of) || err_run(e, "no memory for %lld settings", (long long)count);
    if (ok) {
        pool_run(p, count, play_one, &w);
        ok = settle(s, &w, e);
    }
    for (int64_t k = 0; ok && k < count; k++) s->order[k] = k;
    if (ok) qsort_r(s->order, (size_t)count, sizeof *s->order, by_rank, s->row);
    for (int64_t k = 0; w.of && k < count; k++) daily_done(&w.of[k].daily);
    free(w.of);
    if (!ok) sweep_done(s);
    return ok;
}

void sweep_done(sweep *s) {
    free(s->row);
    free(s->order);
    *s = (sweep){0};
}

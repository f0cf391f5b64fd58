#include "backtest/judge.h"

#include <stdlib.h>

static const uint64_t seed = 1; // of the control: the same trades have the same control

static double money(int64_t v) {
    return (double)v / 1e8;
}

static void take_trades(const replay *p, stats_trade *to) {
    for (int64_t i = 0; i < p->trades; i++) {
        const replay_trade *t = &p->trade[i];
        to[i] = (stats_trade){.entry = t->entry,
            .exit = t->exit,
            .side = t->units > 0 ? 1 : -1,
            .value = money(t->value),
            .traded = t->traded,
            .cost = t->cost,
            .result = money(t->result)};
    }
}

bool judge(const replay *p, const account_terms *t, const judge_options *o, stats *s, err *e) {
    const quotes *q = p->quotes;
    size_t n = (size_t)q->count;
    double *all = malloc(3 * n * sizeof *all);
    stats_trade *trade = malloc((size_t)(p->trades + 1) * sizeof *trade);
    bool ok = (all && trade) || err_run(e, "no memory for the statistics of %zu bars", n);
    for (size_t i = 0; ok && i < n; i++) {
        all[i] = money(p->equity[i]);
        all[n + i] = money(q->close[i]);
        all[2 * n + i] = money(q->open[i]);
    }
    if (ok) take_trades(p, trade);
    stats_input in = {.time = q->time,
        .equity = all,
        .close = all + n,
        .price = all + 2 * n,
        .bars = q->count,
        .cash = money(p->rules.cash),
        .trade = trade,
        .trades = p->trades,
        .days_a_year = t->days_a_year,
        .prediction = o->prediction,
        .outcome = o->outcome,
        .predictions = o->predictions,
        .trials = o->trials,
        .overfit = o->overfit,
        .seed = seed,
        .brief = o->brief};
    ok = ok && stats_make(&in, s, e);
    free(all);
    free(trade);
    return ok;
}

bool judge_daily(const replay *p, daily *d, err *e) {
    size_t n = (size_t)p->quotes->count;
    double *equity = malloc(n * sizeof *equity);
    if (!equity) return err_run(e, "no memory for the daily equity of %zu bars", n);
    for (size_t i = 0; i < n; i++) equity[i] = money(p->equity[i]);
    bool ok = daily_make(p->quotes->time, equity, p->quotes->count, d, e);
    free(equity);
    return ok;
}

#include "backtest/figures.h"

#include <stdlib.h>

static double money(int64_t v) {
    return (double)v / 1e8;
}

static double equity_peak(const replay *p) {
    int64_t most = p->equity[0];
    for (int64_t i = 1; i < p->quotes->count; i++) most = p->equity[i] > most ? p->equity[i] : most;
    return money(most);
}

static double traded(const replay *p) {
    return p->turnover;
}

static double commissions(const replay *p) {
    return money(p->books.commission);
}

static double spreads(const replay *p) {
    return money(p->books.spread);
}

static double slippage(const replay *p) {
    return money(p->books.slippage);
}

static double swaps(const replay *p) {
    return money(p->books.swap);
}

const figure *figures_all(size_t *count) {
    static const figure all[] = {
        {"equity_peak", "highest equity", "of all closes", equity_peak},
        {"traded", "value of fills", "of all of them", traded},
        {"commissions", "commissions", "paid", commissions},
        {"spread_costs", "spread", "paid at entries: value of fills with and without it", spreads},
        {"slippage_costs", "slippage", "paid: value of fills with and without it", slippage},
        {"swaps", "swaps", "added for nights; negative when paid", swaps},
    };
    *count = sizeof all / sizeof *all;
    return all;
}

static void take_trade(stats_trade *to, const replay_trade *t) {
    *to = (stats_trade){.entry = t->entry,
        .exit = t->exit,
        .side = t->units > 0 ? 1 : -1,
        .value = money(t->value),
        .traded = t->traded,
        .cost = t->cost,
        .result = money(t->result)};
}

bool figures_stats(stats *s, const replay *p, double days_a_year, err *e) {
    const quotes *q = p->quotes;
    size_t n = (size_t)q->count;
    double *all = calloc(n, 3 * sizeof *all);
    stats_trade *trade = calloc((size_t)p->trades + 1, sizeof *trade);
    if (!all || !trade) {
        free(all);
        free(trade);
        return err_run(e, "no memory for the statistics of %zu bars", n);
    }
    for (size_t i = 0; i < n; i++) {
        all[i] = money(p->equity[i]);
        all[n + i] = money(q->close[i]);
        all[2 * n + i] = money(q->open[i]);
    }
    for (int64_t i = 0; i < p->trades; i++) take_trade(&trade[i], &p->trade[i]);
    stats_input in = {.time = q->time,
        .equity = all,
        .close = all + n,
        .price = all + 2 * n,
        .bars = q->count,
        .cash = money(p->rules.cash),
        .trade = trade,
        .trades = p->trades,
        .days_a_year = days_a_year,
        .trials = 1,
        .seed = 1};
    bool ok = stats_make(&in, s, e);
    free(all);
    free(trade);
    return ok;
}

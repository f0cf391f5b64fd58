#include "backtest/figures.h"

#include <math.h>

static double money(int64_t v) {
    return (double)v / 1e8;
}

static double cash(const replay *p) {
    return money(p->rules.cash);
}

static double equity_final(const replay *p) {
    return money(p->equity[p->quotes->count - 1]);
}

static int64_t highest(const int64_t *v, int64_t n) {
    int64_t most = v[0];
    for (int64_t i = 1; i < n; i++) most = v[i] > most ? v[i] : most;
    return most;
}

static double equity_peak(const replay *p) {
    return money(highest(p->equity, p->quotes->count));
}

static double total_return(const replay *p) {
    return (equity_final(p) - cash(p)) / cash(p);
}

static double fall(const int64_t *v, int64_t n) {
    double peak = (double)v[0], most = 0;
    for (int64_t i = 0; i < n; i++) {
        peak = fmax(peak, (double)v[i]);
        most = fmax(most, 1 - (double)v[i] / peak);
    }
    return most;
}

static double drawdown(const replay *p) {
    return fall(p->equity, p->quotes->count);
}

static double exposure(const replay *p) {
    return (double)p->held / (double)p->quotes->count;
}

static double trades(const replay *p) {
    return (double)p->trades;
}

static double win_rate(const replay *p) {
    int64_t wins = 0;
    for (int64_t i = 0; i < p->trades; i++) wins += p->trade[i].result > 0;
    return p->trades ? (double)wins / (double)p->trades : NAN;
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

static double turnover(const replay *p) {
    return p->turnover;
}

// Buy-and-hold

static double growth(const replay *p, int64_t close) {
    return (double)close / (double)p->quotes->close[0];
}

static double hold_final(const replay *p) {
    return cash(p) * growth(p, p->quotes->close[p->quotes->count - 1]);
}

static double hold_peak(const replay *p) {
    return cash(p) * growth(p, highest(p->quotes->close, p->quotes->count));
}

static double hold_return(const replay *p) {
    return growth(p, p->quotes->close[p->quotes->count - 1]) - 1;
}

static double hold_drawdown(const replay *p) {
    return fall(p->quotes->close, p->quotes->count);
}

static double one(const replay *p) {
    (void)p;
    return 1;
}

const figure *figures_all(size_t *count) {
    static const figure all[] = {
        {"equity_final", "final equity", "cash after the last bar", FIGURE_MONEY, equity_final, hold_final},
        {"equity_peak", "highest equity", "of all closes", FIGURE_MONEY, equity_peak, hold_peak},
        {"return", "return", "final equity / starting cash - 1", FIGURE_SHARE, total_return, hold_return},
        {"max_drawdown", "max drawdown", "largest 1 - equity / its peak so far, at closes", FIGURE_SHARE, drawdown,
            hold_drawdown},
        {"exposure", "exposure", "bars with a position at any moment / bars", FIGURE_SHARE, exposure, one},
        {"trades", "trades", "positions opened and closed", FIGURE_COUNT, trades, NULL},
        {"win_rate", "win rate", "trades with a result above 0, after costs / trades", FIGURE_SHARE, win_rate, NULL},
        {"turnover", "turnover", "sum of the values of all fills", FIGURE_MONEY, turnover, NULL},
        {"commissions", "commissions", "paid", FIGURE_MONEY, commissions, NULL},
        {"spread_costs", "spread", "paid at entries: value of fills with and without it", FIGURE_MONEY, spreads, NULL},
        {"slippage_costs", "slippage", "paid: value of fills with and without it", FIGURE_MONEY, slippage, NULL},
        {"swaps", "swaps", "added for nights; negative when paid", FIGURE_MONEY, swaps, NULL},
    };
    *count = sizeof all / sizeof *all;
    return all;
}

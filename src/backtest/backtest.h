// A backtest of a signal file: the account's keys, the bars, the signals and their replay as one struct.
#ifndef TRADEWIND_BACKTEST_BACKTEST_H
#define TRADEWIND_BACKTEST_BACKTEST_H

#include "backtest/grid.h"
#include "backtest/sweep.h"

typedef struct {
    const char *signals, *bars;   // files
    const char *const *overrides; // of the keys of account and report: "account.cash=10000"
    int override_count;
} backtest_options;

typedef struct {
    account_terms terms;
    account_rules rules;
    quotes quotes;
    signals signals;
    signals_orders orders;
    replay replay;  // of all bars, ended
    int64_t trials; // as the user counts them, or 1
    stats stats;
} backtest;

// Reads the keys and both files, replays them and makes the statistics. The options must outlive `b`, which must stay
// where it is. On failure `b` is empty.
bool backtest_run(backtest *b, const backtest_options *o, err *e);

// The same up to the replay, which is ready and has seen no bar.
bool backtest_open(backtest *b, const backtest_options *o, err *e);

// Keys of account and report with the options' overrides, checked. The table is filled and must outlive them;
// config_free gives them back.
enum { BACKTEST_KEYS_MOST = 64 };
config *backtest_keys(config_key table[BACKTEST_KEYS_MOST], const backtest_options *o, err *e);

// The same signals with every setting of a grid, of the keys of account, on the pool's threads. Settings are the
// trials, unless the user counts them. `s` must stay where it is. On failure it is empty.
bool backtest_sweep(sweep *s, const backtest_options *o, const grid *g, pool *p, err *e);

// Safe to call twice.
void backtest_done(backtest *b);

#endif

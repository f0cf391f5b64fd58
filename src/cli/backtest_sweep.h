// tradewind backtest --sweep: many settings at once, as a table with the best on top.
#ifndef TRADEWIND_CLI_BACKTEST_SWEEP_H
#define TRADEWIND_CLI_BACKTEST_SWEEP_H

#include "cli/cli.h"
#include "task/backtest_run.h"

// A sweep of a run, or of signals on bars where `signals` is given; then `run.run.overrides` are the account's.
typedef struct {
    backtest_run_options run;
    const char *signals, *bars;
} backtest_swept;

// True where --sweep is given.
bool backtest_sweeps(const cli_options *o);

// Plays the settings of every --sweep and prints them.
bool backtest_sweep_tell(const backtest_swept *w, const cli_options *o, err *e);

#endif

// Steps that backtests of runs and of walks share: the rule of trained weights, the replay by rules, the statistics.
#ifndef TRADEWIND_TASK_BACKTEST_WORK_H
#define TRADEWIND_TASK_BACKTEST_WORK_H

#include "backtest/judge.h"
#include "task/backtest_run.h"
#include "task/keys.h"

// Reads the account and makes the rule of opened weights from their own data, whose split must have a validation part:
// a threshold that is to be fitted is fitted there. `run` is their directory.
bool backtest_work_rule(rule_record *r, account_terms *terms, trained *t, const char *run, const char *symbol, err *e);

// Views of a market from row `from` until the label of row `to` is known.
void backtest_work_cut(const market *m, int64_t from, int64_t to, quotes *q, follow_series *s);

// ERR_INPUT for a fold whose tests lie between its training data.
bool backtest_work_tradable(const trained *t, const char *run, err *e);

// ERR_INPUT where an override is of a key that was for the training: it has no effect on a `what`, "backtest".
bool backtest_work_keys(const trained_options *o, const char *what, err *e);

// True where a key that is told (task/keys.h) is an override without effect, also by another name of such a key.
bool backtest_work_unused(const task *t, const told_key *k);

// Takes over the data's name, overrides without effect, warnings and number of trials.
bool backtest_work_about(backtested *b, const trained *t, const char *run, err *e);

// Takes over the number of trials: that of the description, or of the runs beside `run`.
bool backtest_work_trials(backtested *b, const config *c, const char *run, err *e);

// Statistics of a replay that has ended, with the trials and with overfitting among the runs beside `run`.
bool backtest_work_judge(backtested *b, judge_options *how, const char *run, err *e);

// Trades the scored market from row `from` until the label of row `to` is known, and makes the statistics. Stretches
// count bars from `from`; `run` is the directory beside which trials are looked for.
bool backtest_work_trade(
    backtested *b, const follow_stretch *stretch, int64_t count, int64_t from, int64_t to, const char *run, err *e);

#endif

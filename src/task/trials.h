// Number of trials: settings that were tried on a set, for statistics that doubt the best of many.
#ifndef TRADEWIND_TASK_TRIALS_H
#define TRADEWIND_TASK_TRIALS_H

#include "backtest/overfit.h"
#include "base/err.h"
#include "base/json.h"

// Distinct descriptions, seed and run.dir aside, among the runs below the parent of a run's directory whose data are
// the same as that run's, itself included: at least 1. An ensemble or a walk counts once, and a member or fold stands
// for the whole. Damaged runs do not count; false where the reading of one fails, as then too few would be told.
bool trials_count(const char *run, int64_t *count, err *e);

// Overfitting among these trials: a backtest of the run, by its days (backtest/document.h), and the backtests that the
// others keep of the very same days. `compared` is how many there are, the run's own included; below 2, or where there
// are too few days, `to` is untouched and it is 0.
bool trials_overfit(const char *run, json_t *daily, overfit *to, int64_t *compared, err *e);

#endif

// A backtest of a walk: the test of every fold is traded by that fold's own weights and rule, in order of time, in one
// account, so that money compounds over all tests.
//
// From the first row of a fold's test its rule decides, until that of the next fold that is traded; a position that is
// open then goes on under the new rule. Where tests overlap the newer fold answers. Rows that no fold answers for have
// no score.
#ifndef TRADEWIND_TASK_BACKTEST_WALK_H
#define TRADEWIND_TASK_BACKTEST_WALK_H

#include "task/backtest_run.h"

typedef struct {
    int64_t number;   // from 1
    char why[400];    // it is not traded; "": it is
    rule_record rule; // fitted on its own validation
    int64_t from, to; // rows of the market with its first and its last answer
} backtest_fold;

typedef struct {
    backtested all;      // without a rule of its own
    backtest_fold *fold; // [count] in order of time
    int64_t count, traded;
} backtested_walk;

// Options are those of a run; `run.run` is the walk's directory. ERR_INPUT for a scheme that trains behind its tests,
// for other data than the walk's, and where no fold can be traded. `w` must stay where it is. On failure it is empty.
bool backtest_walk_make(backtested_walk *w, const backtest_run_options *o, err *e);

// Safe to call twice.
void backtest_walk_done(backtested_walk *w);

// Keeps the backtest in DIR/backtest.json.
bool backtest_walk_store(const backtested_walk *w, const assumptions *a, const char *dir, err *e);

#endif

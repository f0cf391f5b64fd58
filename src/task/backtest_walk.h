// A backtest of a walk. Walk-forward: the test of every fold is traded by that fold's own weights and rule, in order of
// time, in one account, so that money compounds over all tests.
//
// From the first row of a fold's test its rule decides, until that of the next fold that is traded; a position that is
// open then goes on under the new rule. Where tests overlap the newer fold answers. Rows that no fold answers for have
// no score.
//
// Combinatorial purged cross-validation: each path (data/scheme.h) is traded like that over all of the data, each group
// by the fold that tests it in the path, in an account of its own. Folds are trained on data behind their tests too, so
// that nobody could have traded a path; how far paths lie apart says how much a single history is worth.
#ifndef TRADEWIND_TASK_BACKTEST_WALK_H
#define TRADEWIND_TASK_BACKTEST_WALK_H

#include "task/backtest_run.h"

typedef struct {
    int64_t number;   // from 1
    int64_t at;       // of the scheme's folds
    split_part part;  // that it answers for
    char why[400];    // it is not traded; "": it is
    rule_record rule; // fitted on its own validation
    int64_t from, to; // rows of the market with its first and its last answer
    int64_t equity;   // of an agent's account at the close of row `to`, or where it was ruined
} backtest_fold;

// A path of the combinatorial scheme, as it was traded.
typedef struct {
    stats stats;
    int64_t groups, traded; // and those whose folds answered
    json_t *folds, *curve;  // numbers of the folds by group; equity (backtest/document.h)
} backtest_path;

typedef struct {
    backtested all;      // without a rule of its own; of the first path
    backtest_fold *fold; // [count] in order of time
    int64_t count, traded;
    backtest_path *path; // [paths]
    int paths;           // 0 for walk-forward
} backtested_walk;

// A statistic over all paths that have it.
typedef struct {
    int paths;
    double mean, deviation, low, high; // NaN where no path has it; a deviation (ddof 1) takes two
} backtest_spread;

backtest_spread backtest_spread_of(const backtested_walk *w, stat_name k);

// Statistics that are compared between paths; STATS_COUNT behind the last.
extern const stat_name backtest_path_stats[];

// Options are those of a run; `run.run` is the walk's directory. ERR_INPUT for other data than the walk's, and where no
// fold can be traded. `w` must stay where it is. On failure it is empty.
bool backtest_walk_make(backtested_walk *w, const backtest_run_options *o, err *e);

// Safe to call twice.
void backtest_walk_done(backtested_walk *w);

// Keeps the backtest in DIR/backtest.json.
bool backtest_walk_store(const backtested_walk *w, const assumptions *a, const char *dir, err *e);

#endif

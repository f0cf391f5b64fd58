// Paths of a combinatorial walk on the screen: statistics of each, and how far they lie apart.
#ifndef TRADEWIND_CLI_BACKTEST_PATHS_H
#define TRADEWIND_CLI_BACKTEST_PATHS_H

#include "backtest/assumptions.h"
#include "base/json.h"
#include "cli/cli.h"
#include "task/backtest_walk.h"

// Adds what a path is, and what its figures are not.
void backtest_paths_add(assumptions *to, const backtested_walk *w);

// Prints the assumptions, unless -q, and a table: a row a path, then mean, standard deviation, least and largest.
void backtest_paths_tell(const backtested_walk *w, const assumptions *a, const cli_options *o);

// An object: `paths`, each with its folds and every statistic, and `spread` by statistic; a new reference.
json_t *backtest_paths_json(const backtested_walk *w);

#endif

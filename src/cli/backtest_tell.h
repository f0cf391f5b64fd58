// A backtest on the screen: assumptions, statistics, the end as an object.
#ifndef TRADEWIND_CLI_BACKTEST_TELL_H
#define TRADEWIND_CLI_BACKTEST_TELL_H

#include "backtest/assumptions.h"
#include "backtest/stats.h"
#include "cli/cli.h"

// Words and figures of a backtest, wherever its positions come from.
typedef struct {
    const assumptions *assumptions;
    const account_terms *terms;
    const replay *replay;
    const stats *stats;
} backtest_told;

// Prints assumptions, long ones over several lines; `quiet`: warnings alone, on standard error.
void backtest_tell_assumptions(const assumptions *a, bool quiet);

// Prints the assumptions, with -q the warnings among them, and every statistic with its interval; with -v its
// definition too.
void backtest_tell(const backtest_told *b, const cli_options *o);

// An object with every statistic, the assumptions, and what the books and the account say; a new reference.
json_t *backtest_tell_json(const backtest_told *b);

#endif

// A backtest of a trained run: its answers become scores, the rule of its description makes positions of them, and an
// account is replayed over the bars.
//
// A threshold that is to be fitted is fitted on the run's own validation part, before anything of another part is
// looked at.
#ifndef TRADEWIND_TASK_BACKTEST_RUN_H
#define TRADEWIND_TASK_BACKTEST_RUN_H

#include "backtest/document.h"
#include "env/env.h"
#include "task/market.h"
#include "task/rule_file.h"

typedef struct {
    trained_options run;
    const char *bars;   // a file of bars in place of the run's: the set is made of it, and its rows are traded; or NULL
    const char *symbol; // of several instruments; or NULL
} backtest_run_options;

typedef struct {
    account_terms terms;
    account_rules rules;
    rule_record rule;
    char part[16];  // name
    char data[256]; // name of the set
    market market;
    quotes quotes;         // rows of the market that are traded: a view
    signals_orders orders; // that changed something
    int64_t scores;        // predictions in these rows
    replay replay;         // ended
    stats stats;
    int64_t trials;
    bool trials_given;
    int64_t compared;   // backtests that overfitting is measured among; 0: it is not
    int64_t trained_on; // samples in the time that the model was trained on; -1: not known
    bool agent;         // that decided; there is no rule
    market_settings market_of_agent;
    int64_t ruined_at; // open of the bar at whose close it was ruined; 0: it was not
    char unused[300];  // overrides without effect, with the reasons; "": none
    int warnings;      // about the data, as data_notes has them
    char warning[DATA_WARNINGS][DATA_WARNING_ROOM];
} backtested;

// Opens the run, fits, decides and replays. `b` must stay where it is. On failure `b` is empty.
bool backtest_run_make(backtested *b, const backtest_run_options *o, err *e);

// Safe to call twice.
void backtest_run_done(backtested *b);

// Keeps the rule in DIR/signal.json, where there is one, and the backtest in DIR/backtest.json.
bool backtest_run_store(const backtested *b, const assumptions *a, const char *dir, err *e);

#endif

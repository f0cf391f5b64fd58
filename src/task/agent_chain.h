// Agents of a walk's folds, one after another in one account.
//
// The agent of a fold decides from the close of the first bar of its test until the next agent does, holes between the
// tests included, and takes over what the account holds then. A path of a combinatorial walk is refused where an agent
// is missing: any other has learnt from the bars of its group. An account that is ruined is not traded any more.
#ifndef TRADEWIND_TASK_AGENT_CHAIN_H
#define TRADEWIND_TASK_AGENT_CHAIN_H

#include "task/backtest_walk.h"

// A walk's data and its folds; the files of the trained folds lie in `o->run.run`.
typedef struct {
    const backtest_run_options *o;
    dataset *data;
    const scheme_folds *folds;
} agent_chain;

// Trades the folds that `w` lists, and says in each why it is not traded. False where a run of one fails, or none can
// be traded.
bool agent_chain_trade(const agent_chain *c, backtested_walk *w, err *e);

#endif

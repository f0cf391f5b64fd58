// An evaluation of an agent that trades: its score, its actions, and the account of every run of the pass beside
// buy-and-hold; and its way into the run's directory, as a part of evaluation.json:
//
//   samples, from, to, epoch   bars with an action, when, and the best iteration, whose weights acted
//   metrics                    mean_reward, std_reward of several accounts, return, hold_return, drawdown,
//   hold_drawdown,
//                              exposure (shares, in the mean of the accounts), trades (of all)
//   accounts                   of each instrument: symbol ("" without a name), and statistics and equity as those of a
//                              backtest (backtest/document.h)
#ifndef TRADEWIND_TASK_AGENT_EVALUATION_H
#define TRADEWIND_TASK_AGENT_EVALUATION_H

#include "base/json.h"
#include "task/agent_answers.h"
#include "task/agent_backtest.h"

typedef struct {
    agent_answers answers;
    agent_score score;
    int64_t count; // accounts, one a run of the pass
    backtested *account;
    err *idle; // [count] kind ERR_INPUT: no order of this account could be filled, and why
} agent_evaluation;

// Plays and replays; to be given back by agent_evaluation_done, also on failure. The agent must outlive it.
bool agent_evaluation_make(agent_evaluation *v, trained_agent *t, err *e);
void agent_evaluation_done(agent_evaluation *v);

// A figure of the accounts: of trades all, else the mean of those that have one; NaN where none has.
double agent_evaluation_figure(const agent_evaluation *v, stat_name k);

// The part as an object; the caller gives it back.
json_t *agent_evaluation_json(const agent_evaluation *v);

// Puts it into the evaluation.json of a run's directory, as evaluation_store does.
bool agent_evaluation_store(const agent_evaluation *v, const char *dir, err *e);

#endif

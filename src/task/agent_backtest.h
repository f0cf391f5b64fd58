// A backtest of a trained agent: its greedy pass over a part, as orders that a replay fills on the same bars.
//
// The equity is that of the agent's environment at every close; what is open at the end is closed as account.last says.
// An agent that is ruined trades no more: what it holds is closed at the next open.
#ifndef TRADEWIND_TASK_AGENT_BACKTEST_H
#define TRADEWIND_TASK_AGENT_BACKTEST_H

#include "task/agent_use.h"
#include "task/backtest_run.h"

// Opens the run, plays the part of one instrument and replays it. Other data are traded whole, files of bars to their
// newest bar. `b` must stay where it is. On failure `b` is empty. It is kept with backtest_run_store.
bool agent_backtest_make(backtested *b, const backtest_run_options *o, err *e);

// The same of an agent that is open, for the instrument named; `run` is its directory.
bool agent_backtest_trade(backtested *b, trained_agent *t, const char *symbol, const char *run, err *e);

// The account of one run of a pass that was played: bars of its stretch, orders and their replay, which has ended
// unless this fails; no statistics. Where no order of it could be filled that is ERR_INPUT, with everything in `b`;
// after another failure `b` is empty.
bool agent_backtest_run(backtested *b, const trained_agent *t, const agent_pass *p, int64_t run, err *e);

// Steps that backtests of agents share.

// ERR_INPUT where an override is of a rule, which an agent does not have, or was for the training (backtest_work_keys).
bool agent_backtest_keys(const trained_options *o, const char *what, err *e);

// Takes over what is told about an agent and its data; `run` is the directory beside which trials are looked for, NULL:
// none are.
bool agent_backtest_about(backtested *b, const trained_agent *t, const char *run, err *e);

// Bars of a stretch, a view of those of the instrument.
quotes agent_backtest_bars(const backtested *b, const trained_agent *t, const market_stretch *s);

// Replays the orders over the quotes and makes the statistics.
bool agent_backtest_replay(backtested *b, const char *run, err *e);

#endif

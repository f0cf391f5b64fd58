// Split of an agent's minibatch into micro-batches.
//
// A minibatch is agent.batch_size x gradient_accumulation_steps rows. Where the description leaves its split open, it
// is computed at once if that fits, else in the fewest micro-batches of equal size that do; with an LSTM they are whole
// sequences. The gradient is the same up to rounding: it is a sum over rows, and advantages are normalised over the
// whole minibatch. A run that goes on keeps the split that it began with, and a
// fold has that of the first.
#ifndef TRADEWIND_TASK_AGENT_SPLIT_H
#define TRADEWIND_TASK_AGENT_SPLIT_H

#include "task/agent.h"

// True where the planner chooses: no number of micro-batches is given or dynamic_batch_sizing is set, a minibatch is
// not asked for whole, and no bound of a term of the loss needs it whole.
bool agent_split_is_open(const agent_task *t);

// Chooses the split and measures what it takes; the one that takes the least memory where none fits. The budget learns
// which keys shrink the plan further. False where the plan of a run that goes on cannot be read.
bool agent_split_choose(agent_task *t, err *e);

// Memory of the split that takes the least.
demand agent_split_least(const agent_task *t);

#endif

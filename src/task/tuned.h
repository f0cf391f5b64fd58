// Steps of opening a task that follow a plan or what was tuned. For task/open.c alone.
#ifndef TRADEWIND_TASK_TUNED_H
#define TRADEWIND_TASK_TUNED_H

#include "task/open.h"

// A run that goes on has the batch that it began with.
bool tuned_keep_batch(task *t, err *e);

// The batch and the way that a plan or tuning has, before the planner chooses the rest.
bool tuned_take(task *t, err *e);

// A tuned way stands in place of the planner's choice, as long as it fits.
void tuned_prefer(task *t);

#endif

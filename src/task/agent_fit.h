// Training of an agent as a run.
#ifndef TRADEWIND_TASK_AGENT_FIT_H
#define TRADEWIND_TASK_AGENT_FIT_H

#include "task/open.h"

// Trains the agent of a description, or goes on with it, and leaves everything in run.dir; events say how it goes.
// False where it fails: the run says what it leaves behind.
bool agent_fit(const task_options *o, err *e);

#endif

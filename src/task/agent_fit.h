// Training of an agent as a run.
#ifndef TRADEWIND_TASK_AGENT_FIT_H
#define TRADEWIND_TASK_AGENT_FIT_H

#include "task/fit.h"

// Trains the agent of a description, or goes on with it, and leaves everything in run.dir; events say how it goes. It
// is a member of an ensemble or (NULL) by itself. False where it fails: the run says what it leaves behind. `stopped`:
// it was asked to stop and did.
bool agent_fit(const task_options *o, const fit_member *member, bool *stopped, err *e);

// The plan that all members of an ensemble have. False, with what is wrong, where they could not be trained.
bool agent_fit_plan(const task_options *o, chosen *plan, err *e);

#endif

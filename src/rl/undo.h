// State of an agent that an iteration changes, as it was before, so that an iteration that is given up leaves no trace.
// For the files of src/rl alone.
//
// It is on the host, as large as weights, moments and states. An iteration that was short is not worth it: whoever
// wants to stop waits for its end.
#ifndef TRADEWIND_RL_UNDO_H
#define TRADEWIND_RL_UNDO_H

#include "rl/work.h"

// Takes the agent as it is, in place of what was taken before.
bool agent_undo_take(agent *a, err *e);

// Puts the agent back to what was taken.
bool agent_undo(agent *a, err *e);

// Gives up what was taken. Safe without.
void agent_undo_drop(agent *a);

#endif

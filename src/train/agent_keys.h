// The section `agent:` of a description: rows for a table of keys. It selects an agent, which learns by acting in an
// environment; rl/agent_read.h makes values of it.
#ifndef TRADEWIND_TRAIN_AGENT_KEYS_H
#define TRADEWIND_TRAIN_AGENT_KEYS_H

#include "base/config.h"

const config_key *agent_keys(size_t *count);

// True where a description is of an agent.
bool agent_given(const config *c);

// Gives an agent's model its usual keys where the description has none: an mlp of 64-64,
// tanh, or a transformer of 2 layers of 64 with 4 heads; without dropout. Does
// nothing to other descriptions.
bool agent_complete(config *c, err *e);

// The reason why an agent does not read a key; NULL where it does, or where its model or the device decides.
const char *agent_unread(const config *c, const char *path);

#endif

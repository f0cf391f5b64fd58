// The section `agent:` of a description as the settings of an agent.
#ifndef TRADEWIND_RL_AGENT_READ_H
#define TRADEWIND_RL_AGENT_READ_H

#include "base/config.h"
#include "rl/agent.h"

// Reads the section, after config_check, and checks it; precision and the parts of environments are the caller's to
// add. ERR_INPUT names the key.
bool agent_read(const config *c, agent_settings *s, err *e);

// Iterations from one evaluation to the next.
int64_t agent_evaluate_every(const config *c, const agent_settings *s);

// The nets of policy and value, without tensors. ERR_INPUT for a kind of model that agents cannot be.
bool agent_read_model(const config *c, const agent_settings *s, model_spec *m, err *e);

#endif

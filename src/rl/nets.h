// The nets of an agent: policy and value, each a model of its own or with all layers but the last in common.
//
// A transformer sees the lags of an observation of `market` as a sequence, the oldest bar first, [B, lags, features];
// all other columns (features that are observed once, the account, the time) are its vector, which joins behind the
// pooling. An mlp sees all columns side by side.
//
// With `agent.lstm` an LSTM stands before each: it sees one step at a time where the agent acts, and whole sequences
// where it learns. Its states lie in the store between steps.
#ifndef TRADEWIND_RL_NETS_H
#define TRADEWIND_RL_NETS_H

#include "model/layer.h"
#include "rl/agent.h"

#define NETS_STREAM "bars" // name of the sequence of lags

enum { NETS_MOST = 2, NETS_POLICY = 1, NETS_VALUE = 2 };

typedef struct {
    tensor score, std, latent, log_std; // of the policy; std, latent and log_std where actions are numbers
    tensor value;
    tensor h[NETS_MOST], c[NETS_MOST]; // states behind the last step, of the nets in their order
} nets;

// LSTMs that an agent has: 0, 1 where policy and value share it, or 2. Names of their states: "policy.h".
int nets_memories(const agent_settings *s);
const char *nets_memory_name(const agent_settings *s, int i);

// Builds what is wanted (NETS_POLICY, NETS_VALUE). `seen` is [B, columns], or [B, T, columns] where whole sequences are
// seen; `before` has the states before them, one for each LSTM, and is not read where there is none.
nets nets_build(graph *g, const agent_settings *s, const model_spec *policy, tensor seen, const layer_memory *before,
    unsigned wanted);

#endif

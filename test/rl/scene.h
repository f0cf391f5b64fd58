// Settings of agents for tests.
#ifndef TRADEWIND_TEST_RL_SCENE_H
#define TRADEWIND_TEST_RL_SCENE_H

#include "rl/agent.h"

// A multi-layer perceptron of two hidden layers of 64 with tanh, or of others.
model_spec scene_net(void);
model_spec scene_net_of(const char *widths, const char *activation);

// A small transformer over lags, for `market`.
model_spec scene_transformer(void);
model_spec scene_transformer_of(const char *keys);

// CartPole with the settings of Stable-Baselines3's zoo.
agent_settings scene_cartpole(uint64_t seed);

// Pendulum likewise.
agent_settings scene_pendulum(uint64_t seed);

#endif

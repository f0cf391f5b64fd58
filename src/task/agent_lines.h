// Lines of an agent's run that both its log and the terminal show.
#ifndef TRADEWIND_TASK_AGENT_LINES_H
#define TRADEWIND_TASK_AGENT_LINES_H

#include "task/agent.h"

// "step 25,600  reward 187.3  length 187  kl 0.0094  clip 0.12  value loss 21.4  41,000 steps/s"
void agent_lines_iteration(const agent_report *r, char *text, size_t room);

// "evaluation at step 25,600: reward 450.2, deviation 30.1, length 450 *"; the star: it is the best so far.
void agent_lines_score(const agent_report *r, const agent_score *s, bool best, char *text, size_t room);

// "cartpole, 8 environments x 32 steps in a rollout, minibatches of 256, 20 passes, 100,096 steps in 391 iterations"
void agent_lines_world(const agent_task *t, char *text, size_t room);

// "two nets for policy and value: mlp, 64-64, tanh, fp32"
void agent_lines_model(const agent_task *t, char *text, size_t room);

// "minibatches of 256 rows in 4 micro-batches of 64, as memory demands": of minibatches that are split.
void agent_lines_split(const agent_task *t, char *text, size_t room);

// "4,200 bars to train on, 900 of validation (gold.npz); 21 numbers observed": of environments that have data.
void agent_lines_data(const agent_task *t, char *text, size_t room);

// Stretches that are too short for an episode; instruments that the account can never trade. False where there are
// none.
bool agent_lines_left(const agent_task *t, char *text, size_t room);
bool agent_lines_idle(const agent_task *t, char *text, size_t room);

#endif

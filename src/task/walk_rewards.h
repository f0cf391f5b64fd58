// Rewards of agents over the tests of a walk: what each fold's agent earned on what came after, and all together.
//
// Beside them stands the better of two trivial answers: to stay out, whose reward is 0, and to hold, bought at the
// first open at which an order can fill and kept to the last close, without costs. Holding is known for rewards that
// are changes of log equity (agent.reward: log); of these, returns are told too.
#ifndef TRADEWIND_TASK_WALK_REWARDS_H
#define TRADEWIND_TASK_WALK_REWARDS_H

#include "base/json.h"
#include "task/agent_use.h"

typedef struct {
    bool follow; // tests follow each other in time, so that rewards add up; else means over folds are told
    bool log;    // rewards are changes of log equity
    int folds;
    double reward, hold; // sums over the folds
    int64_t samples, steps, orders;
} walk_rewards;

// Adds a fold's greedy pass over its test: mean rewards of its stretches. Puts its figures into the fold's row:
// metrics, trivial and skill, each {reward, return}, and episodes, steps, orders (steps that there were; fewer are done
// where the agent was ruined).
void walk_rewards_add(walk_rewards *w, const trained_agent *t, const agent_score *s, json_t *row);

// Puts the figures of all folds into the walk's document.
void walk_rewards_put(const walk_rewards *w, json_t *doc);

#endif

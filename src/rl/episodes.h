// Rewards and lengths of the last hundred episodes that ended, as Stable-Baselines3 averages them.
#ifndef TRADEWIND_RL_EPISODES_H
#define TRADEWIND_RL_EPISODES_H

#include <stdint.h>

enum { EPISODES_KEPT = 100 };

typedef struct {
    int64_t count; // of all that ended
    double total[EPISODES_KEPT], steps[EPISODES_KEPT];
} episodes;

void episodes_add(episodes *e, double total, double steps);

// Means of those kept; NaN where none has ended.
double episodes_reward(const episodes *e);
double episodes_length(const episodes *e);

#endif

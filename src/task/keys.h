// Keys of a description that are to be told: names that were read as others, and keys that have no effect.
#ifndef TRADEWIND_TASK_KEYS_H
#define TRADEWIND_TASK_KEYS_H

#include "task/agent.h"
#include "task/open.h"

typedef struct {
    const char *key;
    const char *text; // "read as train.optimizer.lr", or why it has no effect
    bool unused;      // it has none
} told_key;

// Calls `use` with each. Of a task that was only described, without those that the data decide.
void task_each_key(const task *t, void (*use)(void *arg, const told_key *k), void *arg);

// The same of an agent.
void agent_task_each_key(const agent_task *t, void (*use)(void *arg, const told_key *k), void *arg);

// True where the user has overridden a key, or the section that it is in.
bool task_key_given(const task_description *d, const char *key);

#endif

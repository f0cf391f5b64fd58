// A trained agent, opened to be used.
#ifndef TRADEWIND_TASK_AGENT_USE_H
#define TRADEWIND_TASK_AGENT_USE_H

#include "task/agent.h"
#include "task/trained.h"

typedef struct {
    agent_task task;
    agent *agent;  // with the run's weights
    char *weights; // their path
    char *file;    // the run's description
} trained_agent;

// True where a word names an agent's run, or a file of weights in one.
bool trained_is_agent(const char *word);

// Opens the run that the options name; of those of data the caller's dataset with its parts and `part` are looked at,
// NULL: test. The weights are used on
// any device, and take no more memory than acting needs. On failure everything is undone.
bool trained_agent_open(trained_agent *t, const trained_options *o, err *e);
void trained_agent_close(trained_agent *t);

#endif

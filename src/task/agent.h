// An agent's task: a description with the section `agent:`, a queue on a device and the memory that it takes, ready to
// be trained, used or shown.
#ifndef TRADEWIND_TASK_AGENT_H
#define TRADEWIND_TASK_AGENT_H

#include "rl/actor.h"
#include "task/agent_world.h"
#include "task/open.h"

typedef struct agent_task {
    task_options options; // of which those of data are not looked at
    config *config;
    settings settings;
    agent_settings agent;
    agent_data world; // of environments that have data
    model_spec model; // of both nets, without tensors
    int64_t every;    // iterations from one evaluation to the next
    const device *device;
    queue *queue;
    agent_memory memory;
    int64_t parts;       // micro-batches of the run that goes on, or of the walk; 0: the split is chosen anew
    budget budget;       // before there was a space
    err no_card;         // why the CPU stands in for a card, or an empty text
    double made, opened; // when the description was read and the queue was opened, as clock_seconds has it
} agent_task;

// Tells whether a description is of an agent.
bool agent_described(const task_options *o, bool *is, err *e);

// Reads the description, opens its data where the environment has some, opens a device and measures the memory. `part`
// of the data is what evaluations are on; NULL: validation. The task must stay where it is until it is closed. On
// failure everything is undone.
bool agent_task_open(agent_task *t, const task_options *o, const char *part, err *e);
void agent_task_close(agent_task *t);

// The agent, with its initial weights; NULL on failure.
agent *agent_task_agent(const agent_task *t, err *e);

// A trained policy alone, for so many rows; its weights are to be loaded. NULL on failure.
actor *agent_task_actor(const agent_task *t, int64_t rows, err *e);

// Bytes of the device that the same agent takes with other parts of the same data, where its environment has some,
// beside the arrays that agents can share.
size_t agent_task_bytes(const agent_task *t, const split *parts);

// The memory that it takes; whether it is there and within the limit, ERR_RUN with the figures where it is not.
demand agent_task_demand(const agent_task *t);
bool agent_task_fits(const agent_task *t, err *e);

// True where a file of weights is of an agent in the same environment; ERR_INPUT otherwise.
bool agent_weights_suit(const agent_task *t, const char *path, err *e);

// The plan of a run of this agent.
void agent_task_chosen(const agent_task *t, const agent *a, chosen *c);

// The environment's name.
const char *agent_task_env(const agent_task *t);

#endif

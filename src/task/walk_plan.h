// The plan of a walk: its first run is opened, and says what a run takes, so how many of them fit into the memory.
//
// Runs read one copy of the data, in the host's memory and in that of a device which has its own; agents one set of
// arrays (task/agent_market.h). Where instruments have scales of their own, each run makes the data that it reads.
#ifndef TRADEWIND_TASK_WALK_PLAN_H
#define TRADEWIND_TASK_WALK_PLAN_H

#include "task/agent.h"
#include "task/open.h"

typedef struct {
    task_options options;      // of the first run
    const dataset *data;       // of the walk
    const split *const *parts; // [folds] of each fold that is trained here
    int folds;
    int runs; // all of them
} walk_plan_options;

typedef struct {
    walk_plan_options o;
    bool opened, agents; // the first run is open; it is an agent's
    task model;          // the first run of models, or else
    agent_task agent;    // of agents
    chosen chosen;       // batch and split that all runs have, and the data
    int jobs, threads;   // runs at once, and threads of each
    graph *world;        // that describes the data of agents in `room`; or NULL
    task_place room;     // on a device with memory of its own: for all runs at once, and the data
} walk_plan;

// Opens the first run, so that a mistake in the description is found before a directory is touched. To be closed, also
// on failure.
bool walk_plan_open(walk_plan *p, const walk_plan_options *o, err *e);

// Takes the memory of all runs at once, in one allocation, and puts the data there, where several run at once.
bool walk_plan_take(walk_plan *p, err *e);

// Memory that runs share; NULL: each takes its own.
const task_place *walk_plan_room(const walk_plan *p);

// Arrays that runs of agents share; NULL: each makes its own.
const agent_market *walk_plan_market(const walk_plan *p);

// Gives the device back. Safe to call twice.
void walk_plan_close(walk_plan *p);

#endif

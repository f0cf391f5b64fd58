// The keeper of an agent's run: checkpoints when they are due, the best weights when they are found, and a row of
// run.db for every iteration.
//
// A write that fails is final: from then on every call returns false and agent_keeper_failure says why; what was
// written before stays.
#ifndef TRADEWIND_TASK_AGENT_KEEP_H
#define TRADEWIND_TASK_AGENT_KEEP_H

#include "task/agent.h"
#include "task/records.h"
#include "train/stop.h"

typedef struct agent_keeper agent_keeper;

// All must outlive the keeper.
typedef struct {
    run *run;
    const agent_task *task;
    agent *agent;
    const char *config; // the resolved description
    const chosen *plan;
    stop *stop; // which evaluation was best; checkpoints hold it
} agent_keeper_options;

agent_keeper *agent_keeper_new(const agent_keeper_options *o);
void agent_keeper_free(agent_keeper *k);

// The run's records, which live as long as the keeper.
records *agent_keeper_records(const agent_keeper *k);

// Takes the run up where the newest whole checkpoint of its directory stands, as records_find has it.
bool agent_keeper_resume(agent_keeper *k, err *e);

// An iteration has ended.
typedef struct {
    const agent_report *report;
    const agent_score *score; // NULL: it was not evaluated
    bool best;                // the score is the best so far
    bool last;                // the run ends behind it
    double fps;               // steps of all environments a second since this process began, evaluations included
} agent_ended;

// Rows for run.db; the best weights; a checkpoint every train.checkpoint_every iterations, where
// train.checkpoint_minutes have passed since the last, and at the end.
bool agent_keeper_iteration(agent_keeper *k, const agent_ended *i);

// Before leaving early: the last checkpoint.
bool agent_keeper_leave(agent_keeper *k);

// At the end the file of the best weights is that of the best iteration again, should it be of another: a run that was
// killed may have left that of a later one. Says in run.db that the run is done or stopped.
bool agent_keeper_conclude(agent_keeper *k, bool stopped, bool early);

const err *agent_keeper_failure(const agent_keeper *k); // kind ERR_NONE: none

// The path of the best weights.
const char *agent_keeper_best(const agent_keeper *k);

#endif

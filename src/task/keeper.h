// The keeper of a run: writes checkpoints when they are due, the best weights when they are found, the log and run.db.
//
// It is told of steps and epochs by whoever watches the trainer. A write that fails is final: from then on every call
// returns false and keeper_failure says why; what was written before stays.
#ifndef TRADEWIND_TASK_KEEPER_H
#define TRADEWIND_TASK_KEEPER_H

#include "task/contract.h"
#include "task/records.h"
#include "train/trainer.h"

typedef struct keeper keeper;

// Objects that the keeper works on and texts that checkpoints carry: the resolved description, the plan, the contract
// and the program's version. All must outlive it.
typedef struct {
    run *run;
    trainer *trainer;
    const settings *settings;
    int classes; // 0: the run forecasts
    const char *config;
    const chosen *plan;
    const contract *contract; // the best weights carry it too
    const char *version;
    const struct task *task; // that events are of
    task_listener listener;  // of TASK_RESUME, TASK_WARNING and TASK_CHECKPOINT
} keeper_options;

keeper *keeper_new(const keeper_options *o);
void keeper_free(keeper *k);

// The run's records, which live as long as the keeper.
records *keeper_records(const keeper *k);

// Takes the run up where the newest whole checkpoint of its directory stands, as records_find has it. ERR_INPUT also
// where the inputs or the data are others.
bool keeper_resume(keeper *k, err *e);

// After a step: a checkpoint where train.checkpoint_minutes have passed since the last.
bool keeper_step(keeper *k);

// After an epoch: the best weights, and a checkpoint every train.checkpoint_every epochs and at the end.
bool keeper_epoch(keeper *k, const epoch_report *r);

// Figures of some steps, for run.db.
void keeper_steps(keeper *k, const step_report *r);

// Takes what the monitor, which may be NULL, has seen since the last call, as records_samples has it.
void keeper_samples(keeper *k, monitor *m);

// Scores of trivial answers, for run.db, where the run begins.
void keeper_trivial(keeper *k, const char *line);

// The precision has changed: for the log and run.db. `line` says so.
void keeper_change(keeper *k, const change_report *r, const char *line);

// Before leaving early: the last checkpoint.
bool keeper_leave(keeper *k);

// Once the best weights are back in place: at the end of a run that was resumed their file is theirs again. Says in
// run.db that the run is done or stopped.
bool keeper_conclude(keeper *k, const train_result *r);

const err *keeper_failure(const keeper *k); // kind ERR_NONE: none

// The path of the best weights; and the epoch that they are of, as far as this process knows, or 0.
const char *keeper_best(const keeper *k, int64_t *epoch);

#endif

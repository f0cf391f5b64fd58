// Records of a run: config.yaml, plan.yaml, the log, run.db, and where its checkpoints stand. Keepers of runs share
// them; what a checkpoint holds is theirs to know.
#ifndef TRADEWIND_TASK_RECORDS_H
#define TRADEWIND_TASK_RECORDS_H

#include "run/checkpoint.h"
#include "run/run.h"
#include "task/chosen.h"
#include "task/event.h"
#include "train/budget.h"
#include "train/monitor.h"

typedef struct records records;

// All must outlive the records.
typedef struct {
    run *run;
    const settings *settings; // how often checkpoints are due and how many are kept
    const char *config;       // the resolved description
    const chosen *plan;
    const char *version;     // of the program
    const struct task *task; // that events are of, or NULL
    task_listener listener;  // of TASK_RESUME, TASK_WARNING and TASK_CHECKPOINT
} records_options;

records *records_new(const records_options *o);
void records_free(records *r);

// The plan as plan.yaml has it.
const char *records_plan(const records *r);

// Writes config.yaml and plan.yaml.
bool records_describe(records *r, err *e);

// True where train.checkpoint_minutes have passed since the last checkpoint. Writes rows of run.db that wait, if it is
// time.
bool records_due(records *r);

// A checkpoint that took `seconds` was written; `path` is taken over. `where` says where the run stands. Older ones of
// its kind are removed as train.keep_checkpoints says.
void records_saved(records *r, char *path, checkpoint_kind kind, uint64_t update, const char *where, double seconds);

// Removes all but one of those that steps or the clock have left, once the run is at its end.
void records_ended(records *r);

// The newest checkpoint's path and steps; NULL and 0 where none was written or taken up.
const char *records_newest(const records *r, uint64_t *update);

// Says once in the log that run.db is behind.
void records_warn(records *r);

// Appends to a line of the log what the monitor has shown since the last such line, and the time that is left in
// seconds (NaN: not known): "  ETA 0:21  memory 87 MB  utilisation 29 %".
void records_add_state(records *r, double left, char *text, size_t room);

// The best so far, for the command of on_event: a metric's name and value, and the epoch or iteration.
void records_best(records *r, uint64_t update, const char *what, int64_t epoch, const char *metric, double value);

// Takes what the monitor, which may be NULL, has seen since the last call to run.db; `update`: steps taken. Warnings go
// to the log and to run.db too, and are told.
void records_samples(records *r, monitor *m, uint64_t update);

// Starts the monitor that the settings ask for; NULL where they ask for none, or where it cannot be: a run without its
// monitor is a run. Ends it, which may be NULL, and takes what it has left; the caller frees it.
monitor *records_watch(records *r, const device *d, queue *q, const budget *b);
void records_unwatch(records *r, monitor *m, uint64_t update);

// A run that leaves early, behind its last checkpoint, for run.db.
void records_stop(records *r);

// Says in run.db that the run is done or was stopped; or, in the log too, that it has failed.
void records_conclude(records *r, bool stopped, bool early);
void records_fail(records *r, const char *why);

// Tells what was lost on the side, which is no failure: TASK_LOST.
void records_tell_lost(const records *r);

// Fails with the reason that is in `e` and says what the run leaves behind: `best` holds `epoch`, 0: there is none.
bool records_say_saved(const records *r, const char *best, int64_t epoch, err *e);

// Resuming

// Further demands of a keeper on a checkpoint, which was made under the plan `was`.
typedef bool records_check(const void *arg, const safetensors *s, const chosen *was, const char *path, err *e);

// Opens the newest whole checkpoint, with its path, which the caller frees; damaged ones are logged and told, as is
// everything that changed in the description or the plan and may. NULL, and ERR_INPUT, where there is none, the
// description or the plan are others, or `check` (or NULL) refuses it: the text says what differs.
safetensors *records_find(records *r, records_check *check, const void *arg, char **path, err *e);

// The run stands where a checkpoint, whose path is taken over, put it: what comes after that step, and from that epoch
// on, is forgotten. `changed`: the run stands behind a change of precision at that step.
void records_resume(records *r, char *path, uint64_t update, int64_t epoch, bool changed, const char *where);
bool records_resumed(const records *r);

// Takes the run up at its beginning: it was stopped before its first checkpoint. Its log and its events stay.
void records_restart(records *r);

// True where the number of epochs may not change when a run goes on: a rate that follows a schedule over all of them
// makes it part of every step.
bool records_epochs_matter(const char *config);

// The same of the steps of an agent's run, where a value changes over all of them.
bool records_timesteps_matter(const char *config);

// How many keys of two descriptions differ that may not change where a run goes on; `text` gets the first few of them,
// as outline_compare has it.
int records_differ(const char *was, const char *is, char *text, size_t room);

#endif

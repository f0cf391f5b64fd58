// Tuning a task: which batches, precisions and further ways are measured, and the joining of the result with what was
// tuned before.
#ifndef TRADEWIND_TASK_TUNING_H
#define TRADEWIND_TASK_TUNING_H

#include "task/open.h"
#include "train/tune.h"

// Wishes of the user; 0: not given.
typedef struct {
    int64_t from, to;                 // effective batches, by powers of two and three quarters of them
    int64_t batch[TUNE_BATCHES_MOST]; // or these, rising
    int batches;
    int64_t seconds; // for all of it
} tuning_options;

typedef struct {
    task task;
    tune_task measured;
    tune_result result;
    job other[2 * TUNE_PRECISIONS_MOST]; // of precisions beside the task's
    int others;
    bool kept;          // the result is in the folder of tunings
    char earlier[16];   // day of an earlier tuning, where with that the winner is another; or ""
    wisdom_entry stays; // that winner
    char replaced[16];  // day of an earlier tuning that no longer holds, or ""
} tuning;

// Opens the task, whatever was tuned for it. On failure everything is undone.
bool tuning_open(tuning *t, const task_options *o, err *e);

// Measures, reports progress (TASK_TUNING) and keeps the result unless it was stopped. `measured` says whether there is
// a result to show: also where that is true it is false where the result could not be kept.
bool task_tune(tuning *t, const tuning_options *w, bool *measured, err *e);

void tuning_close(tuning *t);

#endif

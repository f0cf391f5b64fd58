// Runs of a walk, several at once: each thread takes the next run in order, until none is left or a stop is asked for.
// A run is a fold, or one of its seeds.
//
// Runs share nothing but data that are only read. The thread that calls waits, tells how far all of them are, and may
// ask for a stop: those at work save a checkpoint then, and the others do not begin.
#ifndef TRADEWIND_TASK_WALK_JOBS_H
#define TRADEWIND_TASK_WALK_JOBS_H

#include "task/fit.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WALK_LINE_ROOM = 512 };

// Seeds of a fold: members of an ensemble, which the first of them opens and the last one closes.
typedef struct {
    task_options options; // of the ensemble
    int left;             // that have not ended
    pthread_mutex_t mutex;
    fit_members *members; // NULL: not opened
    bool stopped;         // one of them was asked to stop
    err why;              // the first failure
} walk_seeds;

// One run, as it is asked for and as it ended.
typedef struct {
    task_options options; // of a fold by itself
    walk_seeds *seeds;    // of its fold, which have the options then; or NULL
    int member;           // its number among them, from 1
    bool begun, ok, stopped;
    bool already;        // it is passed over, as it is trained
    err why;             // where it is not ok
    train_result result; // of a run that ended
    const metric *metric;
    char lost[WALK_LINE_ROOM]; // records that could not be written, in a line; "" where all were
    _Atomic double all, at;    // samples of the run, or an agent's iterations, and those done
    atomic_bool *stop;         // of all runs
} walk_run;

typedef struct {
    // Called every tenth of a second with the share that is done, from 0 to 1; false asks for a stop.
    bool (*progress)(void *arg, double share);
    // Called once for every run that has begun, in order, when it and all before it have ended.
    void (*ended)(void *arg, int i);
    void *arg;
} walk_view;

// Prepares the seeds of a fold.
void walk_seeds_init(walk_seeds *s, const task_options *o, int count);

// Runs them all, `jobs` at a time, and closes what stayed open. False where threads cannot be had; how each run ended
// is in its record.
bool walk_jobs(walk_run *run, int count, int jobs, const walk_view *v, err *e);

#endif

// Walk-forward: one description, many folds (data/scheme.h), each trained as a run of its own, tested on what came
// after.
//
// A fold is a description too: the walk's own, with walk.fold. So every command that takes a run takes a fold, and a
// fold that goes on is a run that goes on. Runs of a walk share the data, and a process has several of them at work at
// once; none knows of the others, so each has the bits that it has alone.
//
//   WALK/config.yaml     the description
//   WALK/fold_01/        the first fold: a run, or an ensemble of train.ensemble members
//   WALK/walk.json       folds, their parts and scores on the test, and the scores of all together
//
// Shards are processes that share the directory and nothing else: each trains the folds of its number. The last step,
// walk.json, is then a call of its own. A walk without shards in a directory that shards alone have used goes on there.
#ifndef TRADEWIND_TASK_WALK_H
#define TRADEWIND_TASK_WALK_H

#include "task/open.h"

typedef struct {
    int shard, shards; // number of this process, from 1, of so many; 0: it does all
    bool gather;       // nothing is trained: what is there is tested and joined
} walk_options;

// Trains the folds that a description asks for, or goes on with them (`resume`), and tests them. Folds that cannot be
// made are told and left out. False where no fold can be, or one fails.
bool task_walk(const task_options *o, const walk_options *w, err *e);

// Description of a walk alone, to be closed as a task; ERR_INPUT where it describes none, or a walk of agents that have
// no data.
bool walk_describe(task *t, const task_options *o, err *e);

// Folds that it asks for of these data, and the windows of its model, [streams]; to be given back by scheme_done.
bool walk_folds(const task *t, const dataset *d, int64_t *window, scheme_folds *to, err *e);

// Directory of a fold; the caller frees it.
char *walk_dir(const char *walk, const scheme_fold *f);

// `is` becomes true for a walk's directory: a fold has begun in it, or it has a walk.json. False where it cannot be
// read.
bool walk_is(const char *dir, bool *is, err *e);

#endif

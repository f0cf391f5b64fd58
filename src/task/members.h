// Ensembles: a directory whose config.yaml asks for several members, each of which is a run in a directory of its own,
// DIR/member_1 and so on.
#ifndef TRADEWIND_TASK_MEMBERS_H
#define TRADEWIND_TASK_MEMBERS_H

#include "task/chosen.h"

enum { MEMBERS_MOST = 1000 };

// How many members the ensemble of a directory has; 0 where it is no ensemble's. False where its description cannot be
// read.
bool members_of(const char *dir, int *members, err *e);

// The directory of member k, from 1; the caller frees it.
char *members_dir(const char *dir, int k);

// Reads the plan of a run, or of an ensemble, which has none, that of its first member. `there` is false where there is
// none. False where it cannot be read; ERR_INPUT where it is not as it was written.
bool members_plan(const char *dir, chosen *c, bool *there, err *e);

// True where a member has a whole checkpoint to go on from. Else `e` is ERR_RUN where one cannot be read now.
bool members_begun(const char *dir, err *e);

// `done`: it is at its end and has its weights, under exactly this description and plan: training it again would give
// the same bits. False where its files cannot be read.
bool members_done(const char *dir, const char *config, const chosen *plan, bool *done, err *e);

// Compares an ensemble's directory, without a plan, or a member's: ERR_INPUT where its files are of another description
// or plan, beyond what may change where a run goes on, or damaged. False also where they cannot be read.
bool members_same(const char *dir, const char *config, const chosen *plan, err *e);

// Compares what several processes that train into one directory must have in common although a run may change it where
// it goes on: how long they train, and which folds there are. ERR_INPUT where that differs. False also where the
// directory's description cannot be read.
bool members_alike(const char *dir, const char *config, err *e);

#endif

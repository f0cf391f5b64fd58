// The test of a walk: every fold's weights answer for the samples that came after them, and walk.json says how well.
//
// The document is a function of the description, the data and the weights: the same walk gives the same bytes, however
// often it was stopped and in however many processes it ran.
#ifndef TRADEWIND_TASK_WALK_TEST_H
#define TRADEWIND_TASK_WALK_TEST_H

#include "data/scheme.h"
#include "task/open.h"

typedef struct {
    const task_options *o; // of the walk: devices, version and listener
    const char *dir;
    dataset *data;
    scheme_kind kind;
    const scheme_folds *folds;
    bool agents;     // folds are agents
    bool gathered;   // they were trained by other processes
    bool importance; // of columns is measured in every fold
} walk_tested;

// Tests every fold that is trained, keeps its scores and predictions in its directory, writes walk.json and tells
// TASK_WALK_DONE. Folds that are not are told in it. False where none is. `stopped`: it was asked to stop between two
// folds, and walk.json is not written.
bool walk_test(const walk_tested *w, bool *stopped, err *e);

#endif

// A trained run traded with many settings of its rule and its account: it answers once, and every setting is replayed
// on these answers.
//
// Settings are compared on validation unless told otherwise. A threshold that is to be fitted is fitted on validation
// in each setting, as a backtest with that setting would.
#ifndef TRADEWIND_TASK_SWEEP_RUN_H
#define TRADEWIND_TASK_SWEEP_RUN_H

#include "backtest/grid.h"
#include "backtest/sweep.h"
#include "task/backtest_run.h"

typedef struct {
    sweep all;
    char part[16]; // name
    char data[256];
    char symbol[64];
    int64_t scores; // predictions in the rows that are traded
    int warnings;   // about the data, as data_notes has them
    char warning[DATA_WARNINGS][DATA_WARNING_ROOM];
} swept;

// Opens the run and plays a grid of keys of account and signal. Options are those of a backtest; a part of the run's
// own split, validation by default, and no other data. Trials are the settings and the runs beside this one, unless the
// user counts them. `s` must stay where it is. On failure it is empty.
bool sweep_run(swept *s, const backtest_run_options *o, const grid *g, pool *p, err *e);

// Safe to call twice.
void sweep_run_done(swept *s);

#endif

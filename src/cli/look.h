// Looking at runs and checkpoints from outside, for inspect and runs. Nothing here writes.
#ifndef TRADEWIND_CLI_LOOK_H
#define TRADEWIND_CLI_LOOK_H

#include "run/store.h"

typedef struct {
    store_summary sum;
    char model[32], device[128];
    const char *status; // as run.db has it, but "killed" where it says running and nobody trains there
    double loss, mcc;   // of the best epoch, on validation; NAN where there is none
} look;

// What there is to know of a run's directory; ERR_INPUT where it is none.
bool look_at_run(const char *dir, look *l, err *e);

// Prints a run's directory, with its checkpoints, or a file of weights or a checkpoint, with its tensors.
bool look_print_run(const char *dir, bool json, err *e);
bool look_print_weights(const char *path, bool json, err *e);

#endif

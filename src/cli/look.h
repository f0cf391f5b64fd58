// Looking at runs and checkpoints from outside, for inspect and runs. Nothing here writes.
#ifndef TRADEWIND_CLI_LOOK_H
#define TRADEWIND_CLI_LOOK_H

#include "base/json.h"
#include "run/db.h"

typedef struct {
    db_summary sum;
    bool checked; // run.db has sums, which its figures fit
    char model[32], device[128];
    int members;                  // of an ensemble, which has neither epochs nor figures of its own; 0: a run
    int folds;                    // of a walk, likewise
    const char *status;           // of run_status
    double loss;                  // of the best epoch, on validation; NAN where there is none
    double mcc, smape, mase, mae; // likewise, where the run tells classes or forecasts
    char agent[32];               // environment of an agent; empty: the run is of a model
    double reward;                // mean reward of an agent's best evaluation
    double skipped;               // steps without a finite gradient up to the last epoch; 0 where none is known
    char changed[256];            // when and why the precision changed; empty: it did not
    db_gauges gauges;             // of all samples of the monitor
    const char *title;            // of the one of these that tells most, or NULL
    double value;                 // its value
} look;

// Looks at a run's directory; ERR_INPUT where it is none.
bool look_at_run(const char *dir, look *l, err *e);

// Adds the best epoch's figures, the seconds and whether they are checked to an object, which may be NULL.
void look_add_json(const look *l, json_t *to);

// Samples of the monitor as an object; null without a sample.
json_t *look_gauges_json(const db_gauges *g);

// Prints a run's directory, with its checkpoints, or a file of weights or a checkpoint, with its tensors.
bool look_print_run(const char *dir, bool json, err *e);
bool look_print_weights(const char *path, bool json, err *e);

#endif

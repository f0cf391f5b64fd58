// One of several models as it is trained and scored, and the table of them. For task/models*.c alone.
#ifndef TRADEWIND_TASK_MODELS_TABLE_H
#define TRADEWIND_TASK_MODELS_TABLE_H

#include "base/json.h"
#include "task/open.h"

typedef struct {
    const char *file;       // the description
    char *dir, *config;     // its run.dir, and the description as config.yaml has it
    task_options options;   // of the run
    task_listener listener; // of the caller
    bool shares;            // its data are those that were opened for all
    chosen plan;
    split_part test;
    const char *kind;             // of the model
    const metric *metric, *usual; // by which an epoch is best; that all models of such data have
    bool begun, ok, stopped;
    err why;        // where it is not ok
    json_t *scores; // of a model that is done: its columns of the table
} model_run;

// Scores a model that is trained on its test part, and reads its best epoch and its speed.
bool models_score(model_run *r, err *e);

// The table; the caller gives it back.
json_t *models_table(const model_run *r, int count, bool interrupted);

#endif

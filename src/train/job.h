// A training job: the whole graph of a step, from drawing samples to the optimizer, and the tensors that the trainer
// talks to.
#ifndef TRADEWIND_TRAIN_JOB_H
#define TRADEWIND_TRAIN_JOB_H

#include "data/dataset.h"
#include "graph/dtype.h"
#include "train/settings.h"

typedef struct {
    graph *g;
    precision precision;
    tensor logits, totals, confusion, clip;
    tensor seed;         // the root gradient, [2]: the loss scale and 0
    float *class_weight; // [classes] or NULL
} job;

// Builds the graph for a dataset, which must outlive it. `window` gives the length of each stream's window.
void job_init(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m, const int64_t *window,
    precision p);
void job_done(job *j);

#endif

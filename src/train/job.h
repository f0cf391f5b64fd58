// A training job: the whole graph of a step, from drawing samples to the optimizer, and the tensors that the trainer
// talks to.
//
// Samples come in one of two ways. On the device: the graph draws, takes and windows from constants. From the host:
// inputs are states that the trainer writes before every micro-batch, from a loader. The model's nodes have the same
// numbers either way and whatever the columns' types, so that the same samples give the same bits.
#ifndef TRADEWIND_TRAIN_JOB_H
#define TRADEWIND_TRAIN_JOB_H

#include "data/dataset.h"
#include "data/loader.h"
#include "graph/dtype.h"
#include "train/settings.h"

// States that hold a micro-batch; none where the data are on the device.
typedef struct {
    tensor x[STREAMS_MOST], vector, label, weight;
} job_inputs;

typedef struct {
    graph *g;
    precision precision;
    tensor logits, totals, confusion, clip;
    tensor seed;          // the root gradient, [2]: the loss scale and 0
    lr_schedule schedule; // of the learning rate: schedule_rate (ops/schedule.h) gives an update's
    float *class_weight;  // [classes] or NULL
    bool host;            // batches come from the host
    job_inputs input;
    int64_t window[STREAMS_MOST];
    const scaler *scaler; // or NULL
} job;

// Builds the graph for a dataset, which must outlive it, as must the scaler (NULL: none). `window` gives the length of
// each stream's window. RESIDENCY_AUTO has the data on the device.
void job_init(job *j, const dataset *d, const split *sp, const settings *s, const model_spec *m, const int64_t *window,
    const scaler *sc, precision p);
void job_done(job *j);

// The loader of a job whose batches come from the host.
loader_options job_loader(const job *j, const settings *s);

#endif

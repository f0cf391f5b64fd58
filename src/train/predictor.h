// A predictor: trained weights and the forward pass, in the memory that inference takes, at any number of rows.
#ifndef TRADEWIND_TRAIN_PREDICTOR_H
#define TRADEWIND_TRAIN_PREDICTOR_H

#include "train/inference.h"

typedef struct predictor predictor;

// Where a predictor runs: in a space, beside others, with the dataset's store; or, with neither, in a space of its own.
typedef struct {
    const device *device;
    queue *queue;
    space *space;
    store *data;
} predictor_place;

// Bytes that it takes: `own` of the space beside the dataset's store, `total` with it.
engine_memory predictor_memory(const job *j, const settings *s, const device *d, queue *q);

// Rows of a micro-batch are settings.batch_size, for which the job's inputs were laid out (job_split). The weights are
// zero until predictor_load. The job must outlive it. NULL on failure.
predictor *predictor_new(const predictor_place *at, const job *j, const settings *s, err *e);
void predictor_free(predictor *p);

// Takes weights from a file (train/snapshot.h says of what kind), and computes in the precision that they were trained
// in where that is the job's or its fallback's.
bool predictor_load(predictor *p, const char *path, err *e);

// Takes the weights of a store that stands at a step boundary, by a copy on the device.
bool predictor_copy(predictor *p, const store *from, err *e);

const inference *predictor_inference(const predictor *p);

#endif

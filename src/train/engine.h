// The engine of a job: its store, programs, feed and transient memory. It is described, which allocates nothing on the
// device, then measured, then placed in a space, where it has a space of its own.
//
// For training it has two programs: steps, and evaluation. For inference it has the second one alone, with the weights
// and no gradients or moments, at any number of rows. The programs of a job's fallback (train/fallback.h) are described
// with it and fit into the same memory: changing over is recording them on the same store.
#ifndef TRADEWIND_TRAIN_ENGINE_H
#define TRADEWIND_TRAIN_ENGINE_H

#include "graph/program.h"
#include "train/job.h"

typedef struct engine engine;

typedef struct {
    const device *device;
    queue *queue;   // that it will run on, or one like it where it is only measured
    int64_t rows;   // of a micro-batch
    int recompute;  // segments that are computed a second time for backward
    int together;   // steps that can be played at once
    bool inference; // no steps
} engine_options;

// Bytes by purpose.
typedef struct {
    size_t weights, gradients, moments, states; // of the store; its own constants count as states
    size_t staging;                             // of the feed
    size_t activations;                         // the transient region
    size_t recordings;                          // cursors, and on a card what recordings read beside tensors
    size_t fallback;                            // bytes that both are larger for the job's fallback alone
    size_t own;                                 // all of this, as one space
    size_t data;                                // of the dataset's store, which engines share
    size_t total;                               // both
    size_t floor;                               // the most activation bytes alive together
} engine_memory;

// The job and its fallback must outlive it.
engine *engine_new(const job *j, const engine_options *o);
void engine_free(engine *x);

engine_memory engine_measure(const engine *x);

// The same without keeping the engine.
engine_memory engine_measure_job(const job *j, const engine_options *o);

// The dataset of a job as a store, described; and placed in a space. Programs of all jobs on that dataset read it.
store *engine_data(const job *j, bool host_memory);

// Takes its memory in a space, and records the job's programs. `data` is the dataset's store.
bool engine_place(engine *x, space *in, store *data, err *e);

// Changes over to the job's fallback, or back, on the same store, without a way through the host.
bool engine_change(engine *x, const job *to, err *e);

// The job as it is computed now: the one that was given, or its fallback.
const job *engine_job(const engine *x);

// The job in the precision of that name, the one that was given or its fallback, or NULL where there is none; for no
// name (NULL) the one that was given.
const job *engine_find(const engine *x, const char *precision);

store *engine_store(engine *x);
program *engine_steps(engine *x); // NULL for inference
program *engine_evaluation(engine *x);
feed *engine_feed(engine *x); // NULL where the data are on the device

#endif

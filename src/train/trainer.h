// The trainer: epochs of steps on one queue, evaluation after each, early stopping, and the best weights kept.
//
// It prints nothing. A watcher is told of progress and may ask for a stop, which takes effect after the step at hand.
#ifndef TRADEWIND_TRAIN_TRAINER_H
#define TRADEWIND_TRAIN_TRAINER_H

#include "graph/exec.h"
#include "train/job.h"

enum { CLASSES_MOST = 64 };

typedef struct {
    int64_t samples;
    double loss, accuracy, mcc, macro_f1;
    int64_t confusion[CLASSES_MOST * CLASSES_MOST];
} score;

typedef struct {
    int64_t epoch; // from 1
    score train, validation;
    double grad_norm; // of the last step
    double seconds, samples_per_s;
    int64_t skipped;  // steps whose gradient was not finite, since the start
    float loss_scale; // of the next step; 1 but in fp16
    bool best;
} epoch_report;

typedef struct {
    // Called after every step; `done` of `total` samples of the epoch. Returning false stops the run.
    bool (*on_step)(void *arg, int64_t epoch, int64_t done, int64_t total);
    void (*on_epoch)(void *arg, const epoch_report *r);
    void *arg;
} watcher;

typedef struct {
    int64_t epochs, best_epoch; // 0 where no epoch finished
    double best_mcc;
    bool stopped_early, interrupted;
} train_result;

typedef struct trainer trainer;

// Allocates the slab and sets the initial weights, and starts the loader of a job whose batches come from the host; the
// job and the queue must outlive the trainer.
trainer *trainer_new(
    const device *d, queue *q, const job *j, const dataset *data, const split *sp, const settings *s, err *e);
void trainer_free(trainer *t);

exec *trainer_exec(trainer *t);

// Trains to the end, then puts the best epoch's weights back.
bool trainer_run(trainer *t, const watcher *w, train_result *r, err *e);

// Scores the present weights on a span of samples.
bool trainer_evaluate(trainer *t, span samples, score *s, err *e);

// Writes the present weights as safetensors, under PyTorch's names, and the scaler where there is one, as
// "scaler.STREAM.mean" and "scaler.STREAM.std".
bool trainer_save(trainer *t, const char *path, err *e);

#endif

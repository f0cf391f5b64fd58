// The trainer: epochs of steps on one queue, evaluation after each, early stopping, and the best weights kept.
//
// It is advanced by so many steps at a time (trainer_advance); a loop over that is trainer_run. It prints nothing. A
// watcher is told of progress and may ask for a stop, which takes effect after the step at hand. Between steps a run
// can be saved whole; put into another trainer of the same job, it goes on to the same bits.
#ifndef TRADEWIND_TRAIN_TRAINER_H
#define TRADEWIND_TRAIN_TRAINER_H

#include "run/safetensors.h"
#include "train/inference.h"
#include "train/metric.h"
#include "train/stop.h"

typedef struct {
    int64_t epoch;   // from 1
    uint64_t update; // steps taken
    score train, validation;
    double grad_norm; // of the last step
    double lr;        // of the last step
    double seconds, samples_per_s;
    int64_t skipped;     // steps whose gradient was not finite, since the start
    float loss_scale;    // of the next step; 1 but in fp16
    precision precision; // of the validation, and of the next step
    bool best;
    bool last; // the run ends here
} epoch_report;

// Some steps, one after the other. On a card the host looks at some of them only: then least and most are of those.
typedef struct {
    uint64_t update; // steps taken, these included
    int64_t epoch, done, steps;
    double loss_min, loss_mean, loss_max;
    double grad_norm, lr; // of the last one
} step_report;

// fp16 has overflowed for good, and another precision takes its place from the next step on (train/fallback.h).
typedef struct {
    uint64_t update; // steps taken
    int64_t epoch;
    int64_t in_a_row, skipped; // steps without a finite gradient: the last ones, and all since the start
    precision from, to;
} change_report;

typedef struct {
    // Called after every step; `done` of `total` samples of the epoch. Returning false stops the run.
    bool (*on_step)(void *arg, int64_t epoch, int64_t done, int64_t total);
    void (*on_epoch)(void *arg, const epoch_report *r);
    void *arg;
    // Called at most fifty times a second, with what happened since; or NULL.
    void (*on_steps)(void *arg, const step_report *r);
    // Called when the precision has changed and its steps are recorded, before on_step or on_epoch; or NULL. Returning
    // false ends the run with the error that it has filled.
    bool (*on_change)(void *arg, const change_report *r, err *e);
} watcher;

typedef struct {
    int64_t epochs, best_epoch; // 0 where no epoch finished
    double best;                // the metric's value then, on validation
    bool stopped_early, interrupted;
    bool diverged; // ended after an epoch that had no step with a finite gradient
} train_result;

typedef struct trainer trainer;

// Where a trainer runs: beside others in a space, with the dataset's store, on a queue of its own.
typedef struct {
    const device *device;
    queue *queue;
    space *space;
    store *data;
} trainer_place;

// Bytes that a trainer takes: `own` of a space, beside the dataset's store; `total` with it.
engine_memory trainer_memory(const job *j, const split *sp, const settings *s, const device *d, queue *q);

// Takes its memory, with room for the job's fallback too, sets the initial weights, and starts the loader of a job
// whose batches come from the host. The job and the queue must outlive the trainer, and so must space and data.
trainer *trainer_new_in(
    const trainer_place *at, const job *j, const dataset *data, const split *sp, const settings *s, err *e);

// The same in a space of its own, which holds the dataset too.
trainer *trainer_new(
    const device *d, queue *q, const job *j, const dataset *data, const split *sp, const settings *s, err *e);
void trainer_free(trainer *t);

engine *trainer_engine(trainer *t);

// Bytes of its space, and of the dataset's store where it has that.
size_t trainer_bytes(const trainer *t);

// The job as it is computed now: the one that was given, or its fallback.
const job *trainer_job(const trainer *t);

// The metric by which an epoch is best, before the first step and before trainer_restore; without it, the usual one for
// classes or forecasts. `naive2` is what OWA compares with, as sMAPE and MASE, or NULL.
void trainer_judge_by(trainer *t, const metric *m, const double naive2[2]);

// Takes up to `steps` optimizer steps, with the evaluations that fall between them. `more` is false once the run is
// over or the watcher has stopped it, and on failure. After trainer_restore it goes on from there.
bool trainer_advance(trainer *t, int64_t steps, const watcher *w, bool *more, err *e);

// Ends a run that trainer_advance has brought to its end: puts the best epoch's weights back; `r` tells of the whole
// run.
bool trainer_finish(trainer *t, train_result *r, err *e);

// Both, to the end.
bool trainer_run(trainer *t, const watcher *w, train_result *r, err *e);

// Scores the present weights on a part, and predicts with them (train/inference.h). In the middle of an epoch too,
// which then goes on to the same bits and figures.
bool trainer_evaluate(trainer *t, const split_part *samples, score *s, err *e);
bool trainer_predict(trainer *t, const split_part *samples, float *out, err *e);

// Writes the present weights as safetensors, under PyTorch's names, and the scaler where there is one, as
// "scaler.STREAM.mean" and "scaler.STREAM.std"; with the notes given, and one of the precision that they are of, which
// for the best epoch's is the one that it was judged in.
bool trainer_save(trainer *t, const char *path, const safetensors_note *notes, int note_count, err *e);

// Takes weights from a file (train/snapshot.h says of what kind), in place of the initial ones.
bool trainer_load(trainer *t, const char *path, err *e);

// Writes a checkpoint with the notes given. From on_step it stands after that step; from on_epoch, before the next
// epoch; after trainer_run, where the last of these stood, but with the best weights in place.
bool trainer_checkpoint(trainer *t, const char *path, const safetensors_note *notes, int note_count, err *e);

// Takes up where a checkpoint stands, before trainer_run, in the precision that the run had there.
bool trainer_restore(trainer *t, const safetensors *from, const char *path, err *e);

// Where it stands: steps taken, the running epoch (from 1) and how many of its samples are done.
void trainer_stands(const trainer *t, uint64_t *update, int64_t *epoch, int64_t *done);

#endif

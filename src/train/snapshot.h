// A run between two steps, as tensors: all that a trainer needs to go on to the same bits.
//
// Under the parameters' own names stand the weights, which PyTorch takes as they are. Beside them, in a checkpoint:
// "moment1.NAME" and "moment2.NAME" of the optimizer, "best.NAME" of the best epoch where that is not this one,
// "state.NAME" of everything else that lives across steps in the store (sums of the epoch, clip, loss scale; the
// version before numbered them, "state.K.NAME"), "trainer.counts", "trainer.values" and "trainer.spans"; and
// "scaler.STREAM.mean" and "scaler.STREAM.std" where inputs are scaled, "scaler.target.mean" and "scaler.target.std"
// where targets are.
#ifndef TRADEWIND_TRAIN_SNAPSHOT_H
#define TRADEWIND_TRAIN_SNAPSHOT_H

#include "run/safetensors.h"
#include "train/engine.h"
#include "train/plateau.h"
#include "train/stop.h"

// Where training stands.
typedef struct {
    uint64_t update;          // steps taken
    int64_t epoch;            // the running one, from 1
    int64_t done;             // samples of it; 0: it has not begun
    double seconds;           // spent in it
    bool best_is_now;         // the weights are the best epoch's
    precision best_precision; // that the best epoch was judged in; of no meaning where there is none
    stop stop;                // patience and direction are not saved: they are the description's
    plateau plateau;          // where the rate falls by the metric
    step_progress progress;   // the device's step record; of no meaning where the epoch has not begun,
    step_cursor cursor;       // as this half of it
} standing;

// Parts of a snapshot. `best` is a slab of the best epoch's weights.
typedef struct {
    engine *x;
    float *best;
    standing *at;
    precision weights; // that the present weights are of
    safetensors_note
        trivial; // of the training part, for trivial answers: "class_shares" or "target_mean"; no key: none
} snapshot;

// Reads everything from the device (the step record into `at` too) and writes a checkpoint (run/checkpoint.h), with
// notes "epoch", "done", "best_epoch", "best_precision" and "precision" beside those given.
bool snapshot_save(const snapshot *s, const char *path, const safetensors_note *notes, int note_count, err *e);

// Puts everything back; ERR_INPUT where the tensors are not those of this job, or its scales were fitted to other bits
// than the file's, by the name of the column. `path` is for messages. After a failure the device holds a mixture.
bool snapshot_load(const snapshot *s, const safetensors *from, const char *path, err *e);

// The weights alone, with the scaler where there is one, the notes given and those of their precision and of trivial
// answers.
bool snapshot_save_weights(const snapshot *s, const char *path, const safetensors_note *notes, int note_count, err *e);

// Weights of another run or of PyTorch, of type F32, F16, BF16 or F64: every parameter must be there in its shape, and
// nothing that is not a parameter or part of a checkpoint. ERR_INPUT names what is missing, different or too much.
bool snapshot_load_weights(engine *x, const char *path, err *e);

// Computes from here on in the precision that the weights of a file were trained in, where the engine has it.
bool snapshot_follow(engine *x, const char *path, err *e);

#endif

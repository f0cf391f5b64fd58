// Trained weights that answer for one bar at a time: a run, or all members of an ensemble side by side.
//
// The inference programs are of one row, on the host. An answer has the bits that `predict` and `backtest` give for the
// same bar, whatever the rows of their programs.
#ifndef TRADEWIND_LIVE_MODEL_H
#define TRADEWIND_LIVE_MODEL_H

#include "live/board.h"
#include "task/trained.h"

typedef struct {
    trained_options run; // run, overrides, devices and version are used
    board *board;
} model_options;

typedef struct {
    trained trained; // on the board's dataset
    board *board;
    predictor **member; // [members] of an ensemble; NULL: the one of `trained`
    int members;        // 1 or more
    int64_t width;      // of an answer
    float *each;        // [members, width]
} live_model;

// `m` must stay where it is. ERR_INPUT where weights and board do not fit (task/contract.h). On failure `m` is empty.
bool live_model_open(live_model *m, const model_options *o, err *e);

// Safe to call twice.
void live_model_close(live_model *m);

// The answer for an instrument that is ready, [width]: probabilities or a forecast, finite or not.
bool live_model_answer(live_model *m, int series, float *answer, err *e);

// A task on the board reads its tables where they lie. Where every instrument has its own scale it has a view of them,
// whose rows of one instrument are made anew.
void live_rescale(const task *t, board *b, int series);

// Inputs of the newest rows, and how many of them lie more than `by` deviations from what training saw; of an agent
// too. `s` may be NULL: inputs are as they are.
void live_outside(const scaler *s, const board *b, int series, double by, int64_t *outside, int64_t *of);

#endif

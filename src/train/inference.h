// The forward pass of a job over a part of its data: scores and predictions. Used by the trainer after every epoch, and
// by a predictor, which has no trainer.
//
// It has a cursor of its own (graph/step.h), so it never moves the trainer's; the sums that it scores by are the
// store's, and are cleared first.
#ifndef TRADEWIND_TRAIN_INFERENCE_H
#define TRADEWIND_TRAIN_INFERENCE_H

#include "train/batches.h"
#include "train/metric.h"

enum { CLASSES_MOST = 64 };

// A score of classes or of forecasts: what does not fit is NaN, and zeros in the lists.
typedef struct {
    int64_t samples;
    double loss;
    double accuracy, mcc, macro_f1;
    double mae, rmse, smape, mase; // in the data's units; sMAPE in percent; MASE of series, by the window's naive error
    double errors[ERRORS_COUNT];   // what these four come from
    int64_t confusion[CLASSES_MOST * CLASSES_MOST];
} score;

typedef struct {
    const device *device;
    queue *queue;
    engine *engine;
    batches *batches;
    int64_t rows; // of a micro-batch
} inference;

// Samples of a part from the first one on, as a program draws them.
step_cursor inference_cursor(const split_part *p, uint32_t epoch, bool shuffle);

// Scores the present weights on a part.
bool inference_score(const inference *i, const split_part *p, score *s, err *e);

// Predictions of the present weights for a part: the classes' probabilities, [count, classes], for which the job's
// logits must have been kept (job_keep_logits); or forecasts in the data's units, [count, quantiles * horizon].
bool inference_predict(const inference *i, const split_part *p, float *out, err *e);

// Columns of a prediction.
int64_t inference_width(const job *j);

// The sums as they stand, of so many samples; and clearing them.
bool inference_read(const inference *i, int64_t samples, score *s, err *e);
bool inference_clear(const inference *i, err *e);

// Probabilities of row `row` of logits [rows, K] of this type: their softmax.
void inference_softmax(const void *logits, dtype type, int64_t row, int K, float *to);

#endif

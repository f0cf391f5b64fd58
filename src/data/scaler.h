// The scaler: what every column of every stream is reduced by and divided by before a model sees it.
//
// It is fitted on the training part alone, on the rows that windows of training samples can see, each row once: mean
// and standard deviation (of the population) in double, the column's first value taken off first, then as floats. A
// column that does not change there, its deviation below 1e-30 or below 1e-12 of its mean, is divided by 1. Columns are
// those of the stream's parts side by side. The per-sample vector is not scaled. Targets of forecasts have a scale of
// their own beside it (data/target.h).
#ifndef TRADEWIND_DATA_SCALER_H
#define TRADEWIND_DATA_SCALER_H

#include "data/target.h"

typedef struct {
    int streams;
    int64_t width[STREAMS_MOST];
    float *mean[STREAMS_MOST];  // [width]
    float *std[STREAMS_MOST];   // [width]
    float *value[STREAMS_MOST]; // [2, width]: the means, then 1 / std
    float *memory;
    target_scale target; // zero: targets are as they are
} scaler;

// A scaler of zero means and unit deviations for the streams of a dataset; NULL where memory is short.
scaler *scaler_new(const dataset *d, err *e);

// Takes the mean and deviation of a column.
void scaler_set(scaler *s, int stream, int64_t column, float mean, float std);

// `window` gives the length of each stream's window. NULL on failure: a value that is not finite is ERR_INPUT and is
// named by stream, row and column.
scaler *scaler_fit(const dataset *d, const split_part *train, const int64_t *window, err *e);

void scaler_free(scaler *s);

#endif

// The scaler: what every column of every stream is reduced by and divided by before a model sees it.
//
// It is fitted on the training part alone, on the rows that windows of training samples can see, each row once: mean
// and standard deviation (of the population) in double, the column's first value taken off first, then as floats. A
// column that does not change there, its deviation below 1e-30 or below 1e-12 of its mean, is divided by 1. Columns are
// those of the stream's parts side by side. Several instruments share one scale, or each has its own, fitted on its own
// rows. The per-sample vector is not scaled. Targets of forecasts have a scale of their own beside it (data/target.h).
#ifndef TRADEWIND_DATA_SCALER_H
#define TRADEWIND_DATA_SCALER_H

#include "data/target.h"

typedef struct scaler {
    int streams;
    int64_t width[STREAMS_MOST];
    int64_t series;             // scales of each column: 1, or one for every instrument
    float *mean[STREAMS_MOST];  // [series, width]
    float *std[STREAMS_MOST];   // [series, width]
    float *value[STREAMS_MOST]; // [2, width]: the means, then 1 / std; zeros and ones where instruments have their own
    float *memory;
    target_scale target; // zero: targets are as they are
} scaler;

// A scaler of zero means and unit deviations for the streams of a dataset; NULL where memory is short.
scaler *scaler_new(const dataset *d, bool own, err *e);

// Takes the mean and deviation of a column, which count on from instrument to instrument.
void scaler_set(scaler *s, int stream, int64_t column, float mean, float std);

// `window` gives the length of each stream's window. NULL on failure: a value that is not finite is ERR_INPUT and is
// named by stream, row and column. `own`: every instrument has its own scale, and ERR_INPUT names one without training
// samples; the dataset is of bars with symbols.
scaler *scaler_fit(const dataset *d, const split_part *train, const int64_t *window, bool own, err *e);

// The dataset with every instrument's rows on its own scale, as a view (dataset_view) with tables of f32.
dataset *scaler_apply(const scaler *s, dataset *from, bool keeps, err *e);

// Puts the rows of one instrument into such a view anew, after those of `from` have changed.
void scaler_follow(const scaler *s, const dataset *from, dataset *view, int64_t series);

void scaler_free(scaler *s);

#endif

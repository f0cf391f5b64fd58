// Folds materialised windows back into the series that they were cut from.
//
// Windows of `steps` rows come in the order of the samples. A window that is the one before moved on by k rows, 0 <= k
// < steps, to the bit, adds its k new rows to the series; any other begins a new run with all of its rows. A sample is
// then the index of its window's last row and of its run's first row; the window gathered from there is the one that
// was given, bit for bit, and never reaches before its run. Rows are compared as bytes: NaNs and signed zeros are kept.
// Memory does not grow with the series, which goes to a sink as it is found.
#ifndef TRADEWIND_DATA_FOLD_H
#define TRADEWIND_DATA_FOLD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// Takes the next `count` rows of the series; false, with the reason, stops the folding.
typedef bool fold_sink(void *arg, const void *rows, int64_t count, err *e);

typedef struct {
    int64_t samples, rows, runs;
} fold_sums;

typedef struct fold fold;

// NULL where memory is short.
fold *fold_new(int64_t steps, size_t row_bytes, fold_sink *sink, void *arg, err *e);
void fold_free(fold *f);

// Folds the next `count` windows, which lie one after the other; row[i] and first[i] say where each is in the series.
// ERR_INPUT where the series outgrows 2^31 - 1 rows.
bool fold_push(fold *f, const void *windows, int64_t count, int32_t *row, int32_t *first, err *e);

fold_sums fold_so_far(const fold *f);

#endif

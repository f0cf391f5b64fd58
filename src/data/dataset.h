// A dataset: series stored once, and samples that point into them.
//
// Every stream is a panel: rows of features, series after series. A sample names, per stream, the last row of its
// window and the first row of the series that row belongs to; windows are never materialised. Samples are in time
// order.
#ifndef TRADEWIND_DATA_DATASET_H
#define TRADEWIND_DATA_DATASET_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { STREAMS_MOST = 8 };

typedef struct {
    const char *name;
    int64_t rows, features;
    const float *series;  // [rows, features]
    const int32_t *row;   // [samples] the window's last row
    const int32_t *first; // [samples] the first row of its series
} stream;

typedef struct dataset {
    void *memory; // one block that owns what the pointers point to
    const char *name;
    int64_t samples;
    int streams;
    stream stream[STREAMS_MOST];
    int64_t width;        // of the vector; 0 for none
    const float *vector;  // [samples, width]
    int classes;          //
    const int32_t *label; // [samples]
    int64_t horizon;      // bars until a label is known
    const int32_t *best;  // [samples] what the best possible classifier answers, where that is known; or NULL
} dataset;

// A dataset with one zeroed block of `bytes`, to be cut up by dataset_take; NULL, with the reason, where memory is
// short.
dataset *dataset_new(size_t bytes, err *e);

// The next `count` items of `size` bytes of the block, from `*at` on; the caller has counted them into its size.
void *dataset_take(dataset *d, size_t *at, int64_t count, size_t size);

// Bytes of everything that the pointers above point to.
int64_t dataset_bytes(const dataset *d);

void dataset_free(dataset *d);

#endif

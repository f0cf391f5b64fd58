// Splits samples by time into training and validation, with a gap in between.
//
// A training sample's label is known `horizon` bars later; samples whose label reaches into the validation span are
// purged, and an embargo leaves out further samples, so that what is validated was not seen through overlapping labels.
#ifndef TRADEWIND_DATA_SPLIT_H
#define TRADEWIND_DATA_SPLIT_H

#include "base/err.h"
#include "data/dataset.h"

typedef struct {
    int64_t first, count;
} span;

typedef struct {
    double train, validation; // shares of the samples
    int64_t purge;            // samples; -1: as many as the label's horizon
    int64_t embargo;          // samples
} split_options;

typedef struct {
    span train, validation;
    int64_t dropped; // by purge and embargo
} split;

// ERR_INPUT where a part would be empty.
bool split_make(const dataset *d, const split_options *o, split *s, err *e);

#endif

// The symbol of every sample as an input: a column of the vector for each instrument, 1 for the sample's own.
#ifndef TRADEWIND_DATA_SYMBOLS_H
#define TRADEWIND_DATA_SYMBOLS_H

#include "data/dataset.h"

// A view (dataset_view) whose vector has further columns, symbol_NAME for each of `count` names; NULL: the dataset's
// own. ERR_INPUT where the dataset has no symbols, or others, its vector has no room, or the columns would take more
// than 1 GB: a byte for each sample and symbol.
dataset *symbols_new(dataset *from, const char *const *names, int64_t count, bool keeps, err *e);

#endif

// The newest bars of a dataset, labelled or not: a view of it, for answers that somebody acts on.
#ifndef TRADEWIND_DATA_LATEST_H
#define TRADEWIND_DATA_LATEST_H

#include "data/dataset.h"

// The newest `bars` samples of every instrument, fewer where there are not so many, in order of (close, symbol). All
// count as samples; `known` says which have a label, the others' labels and targets are zeros. `from` is kept by the
// new dataset, and freed with it or, on failure, at once. ERR_INPUT where it is not of bars.
dataset *latest_new(dataset *from, int64_t bars, err *e);

#endif

// The newest bars of a dataset, labelled or not: a view of it, for answers that somebody acts on.
#ifndef TRADEWIND_DATA_LATEST_H
#define TRADEWIND_DATA_LATEST_H

#include "data/dataset.h"

// The newest `bars` samples of every instrument, fewer where there are not so many, in order of (close, symbol). All
// count as samples; `known` says which have a label, the others' labels and targets are zeros. `from` is kept by the
// new dataset, and freed with it or, on failure, at once. ERR_INPUT where it is not of bars.
dataset *latest_new(dataset *from, int64_t bars, err *e);

// True where a coarser stream's newest bar of an instrument is older than it should be: a later one must have closed
// since, as the finest bars behind it are its span long and more. Weekends and nights without fine bars do not count.
// `text` then says so: "slow: newest bar closed 2025-10-06 05:00 UTC, 3.65 days before the newest fast bar".
bool latest_is_late(const dataset *d, int64_t series, int stream, char *text, size_t n);

#endif

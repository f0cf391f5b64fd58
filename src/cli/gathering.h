// The loader beside plain copies, for `tradewind bench loader`.
#ifndef TRADEWIND_CLI_GATHERING_H
#define TRADEWIND_CLI_GATHERING_H

#include "data/dataset.h"

typedef struct {
    double loader, copies; // samples a second, medians of passes that took turns
    double megabytes;      // of the loader's ring and of the data
} gathering;

// Gathers `data` (two streams or fewer of plain f32, and a vector), in shuffled batches, with two threads: by the
// loader, and by threads that do nothing but copy the same samples, whose indices they were given.
bool gathering_measure(const dataset *data, const int64_t *window, int64_t batch, int64_t passes, gathering *g, err *e);

#endif

// How fast a set that lies in a mapped file gets to a device, for `tradewind bench copy`: what streamed training can
// reach at most.
#ifndef TRADEWIND_CLI_COPYING_H
#define TRADEWIND_CLI_COPYING_H

#include "data/dataset.h"
#include "graph/device.h"

typedef struct {
    double file;         // GB/s from the file's pages through pinned memory to the device, in order, in large pieces
    double pinned;       // GB/s from pinned memory to the device
    double loader;       // GB/s of shuffled batches, gathered by the loader and fed to the device
    double sample;       // bytes of a sample in the file
    int threads;         // that read the file
    int workers;         // of the loader
    double pinned_bytes; // the most that was pinned
} copying;

// Each figure is the best of some passes; those through the file also of several sizes of a piece.
bool copying_measure(const dataset *data, const device *d, queue *q, const int64_t *window, int64_t batch, int threads,
    copying *c, err *e);

#endif

// Memory that a device has pinned, for the buffers of a loader whose batches go to it.
#ifndef TRADEWIND_TRAIN_PINNED_H
#define TRADEWIND_TRAIN_PINNED_H

#include "data/loader.h"
#include "graph/device.h"

// Whose memory it is; must outlive the loader.
typedef struct {
    const device *d;
    queue *q;
} pinned;

loader_memory pinned_memory(pinned *p);

#endif

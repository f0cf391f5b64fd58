// The batches of a job: nothing where the graph draws them from data on the device; from a loader on the host, through
// the feed of an engine, where it does not.
#ifndef TRADEWIND_TRAIN_BATCHES_H
#define TRADEWIND_TRAIN_BATCHES_H

#include "train/engine.h"
#include "train/pinned.h"

typedef struct {
    feed *feed; // NULL: data are on the device
    loader *loader;
    pinned pinned;
} batches;

// Starts the loader. The engine must outlive it. It must stay where it is.
bool batches_open(batches *b, const device *d, queue *q, engine *x, const settings *s, err *e);
void batches_close(batches *b);

// Goes to a range of samples, once the device has read what it was given.
bool batches_seek(batches *b, const loader_range *r, err *e);

// Feeds the next batch to what is played next. The loader holds this batch and the one before it, which the device may
// still be reading; what came before is given back.
bool batches_next(batches *b, err *e);

// Waits until the device has read all that it was fed.
bool batches_settled(batches *b, err *e);

#endif

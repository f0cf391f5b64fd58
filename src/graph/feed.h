// Inputs that come from the host, micro-batch by micro-batch.
//
// On a device with memory of its own they lie there twice, in two lanes, and programs are recorded once for each lane:
// while a step reads one, the next micro-batch is copied to the other. (One lane and a copy on the device would do with
// one recording of each pass, but the copy stands in every step's way, and may wait for the copy from the host.)
// Programs of one queue at the same number of rows share a feed.
#ifndef TRADEWIND_GRAPH_FEED_H
#define TRADEWIND_GRAPH_FEED_H

#include "graph/graph.h"
#include "graph/space.h"

// A state that comes from the host, and where it lies in the bytes of a micro-batch: at a multiple of PLAN_ALIGN.
typedef struct {
    const char *state; // its name in the graph
    size_t at;
} feed_input;

typedef struct feed feed;

// `bytes` is a micro-batch as feed_next takes it. The inputs are copied; their names must outlive the feed.
feed *feed_new(bool host_memory, const feed_input *input, int inputs, size_t bytes);
void feed_free(feed *f);

// Bytes that it takes in a space; taking them.
size_t feed_bytes(const feed *f);
bool feed_place(feed *f, queue *q, space *in, err *e);

size_t feed_batch(const feed *f); // bytes of a micro-batch
int feed_lanes(const feed *f);
int feed_lane(const feed *f); // that the last micro-batch went to

// True if a state of a graph is fed; its address in a lane, NULL where it is not.
bool feed_has(const feed *f, const graph *g, tensor t);
void *feed_address(const feed *f, const graph *g, tensor t, int lane);

// Gives what is played next its inputs, from memory that the device pinned. Returns while they are still being read;
// feed_done waits until they have been, of all micro-batches or of all but the last.
bool feed_next(feed *f, const void *from, err *e);
bool feed_done(feed *f, bool but_last, err *e);

#endif

// The loader: batches of samples, gathered on the host by threads while the caller works on the batch before.
//
// A range names samples and their order: as they lie, or shuffled by the epoch's permutation (rng_permute: a function
// of seed, epoch and position, so there is no list of indices, and any position can be gone to). Batch after batch
// fills a ring of buffers. Threads share the rows of a batch out among them; what is in a row depends on its position
// alone, so batches come in order and are the same to the bit for any number of threads.
//
// The series are read where they lie, in memory or in a mapped file, however large. Rows beyond the range's end repeat
// its first sample with weight 0, as the operator `draw` has it. Nothing is allocated after loader_new.
//
// A batch is one block, so that it can travel in one copy: its arrays lie in it one behind the other (loader_layout).
#ifndef TRADEWIND_DATA_LOADER_H
#define TRADEWIND_DATA_LOADER_H

#include "data/scaler.h"

// Where buffers come from. `take` gives NULL where there is none; `give` takes back what it gave.
typedef struct {
    void *(*take)(void *arg, size_t bytes);
    void (*give)(void *arg, void *memory, size_t bytes);
    void *arg;
} loader_memory;

typedef struct {
    int64_t window[STREAMS_MOST]; // bars, by stream
    int64_t batch;                // rows
    uint64_t seed;                // of shuffles
    int workers;                  // threads; 0: the caller gathers when it asks
    int prefetch;                 // batches gathered ahead, at least 1
    int hold;                     // batches that the caller may hold; 0: one
    const scaler *scaler;         // applied to streams, or NULL; must outlive the loader
    bool price;                   // batches have prices
    const loader_memory *memory;  // NULL: pages from the system
} loader_options;

// Samples in an order, from a position on.
typedef struct {
    split_part samples;
    bool shuffle;
    uint32_t epoch;   // chooses the permutation
    int64_t position; // of the first row of the next batch
} loader_range;

typedef struct {
    const void *block;            // all of it, as loader_layout_of says
    const float *x[STREAMS_MOST]; // [B, T, C]
    const float *vector;          // [B, width], or NULL
    const int32_t *label;         // [B], or NULL
    const float *target;          // [B, target_width], or NULL
    const float *price;           // [B], or NULL
    const float *weight;          // [B]: 1, or 0 beyond the range's end
    const int32_t *index;         // [B] which samples
    int64_t rows;                 // of weight 1
    int64_t position;             // of its first row in the range
} loader_batch;

// Where the arrays of a batch lie in its block, in bytes: each at a multiple of 64, as the block itself. Arrays that
// are not there take none. `index`, which is of use to the host alone, comes last.
typedef struct {
    size_t x[STREAMS_MOST], vector, target, price, label, weight, index;
    size_t bytes; // of the block
} loader_layout;

typedef struct loader loader;

// The dataset must outlive the loader. It stands before an empty range. NULL on failure.
loader *loader_new(const dataset *d, const loader_options *o, err *e);
void loader_free(loader *l);

// Goes to a range; batches that were gathered ahead are forgotten.
void loader_seek(loader *l, const loader_range *r);

// The next batch; false at the range's end. It is valid until `hold` further ones have been asked for, or loader_seek.
bool loader_next(loader *l, loader_batch *b);

loader_layout loader_layout_of(const dataset *d, const loader_options *o);

// Bytes of the ring that loader_new would take.
size_t loader_measure(const dataset *d, const loader_options *o);

#endif

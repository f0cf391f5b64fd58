// Tensors gathered for a file of weights or a checkpoint, and parameters taken from one.
#ifndef TRADEWIND_TRAIN_GATHERED_H
#define TRADEWIND_TRAIN_GATHERED_H

#include "base/arena.h"
#include "data/scaler.h"
#include "graph/graph.h"
#include "run/safetensors.h"

// Entries; all that they point to lives in the arena or with the caller.
typedef struct {
    arena arena;
    safetensors_entry *entry;
    int count, room;
} gathered;

// Room for so many entries; given back with the arena.
void gathered_init(gathered *to, int room);

// Adds values of `element` bytes each. Name and data must live as long as the entries.
void gathered_add(gathered *to, const char *name, safetensors_type type, size_t element, shape s, const void *data);

// Adds a slab's parameters, each under its name with `prefix` before it.
void gathered_slab(gathered *to, const graph *g, const char *prefix, const float *slab);

// Adds the scales of a dataset's streams by name, "scaler.STREAM.mean" and "scaler.STREAM.std", and those of targets;
// nothing where there is no scaler.
void gathered_scaler(gathered *to, const scaler *s, const dataset *d);

// Fills a slab with the parameters that a file has under such names. ERR_INPUT where one is missing or of another
// shape; `path` is for messages.
bool gathered_fill(const graph *g, const safetensors *from, const char *prefix, const char *path, float *slab, err *e);

// True where an entry has this shape.
bool gathered_same_shape(const safetensors_entry *t, shape s);

#endif

// A space: the one device allocation of a process, under one budget, and the reservations inside it.
//
// It is made once, as large as what was measured beforehand. Stores, transient regions and the programs' own memory are
// reserved in it by name and given back; that allocates nothing on the device. A reservation takes the lowest free
// stretch that is large enough, so the same reservations in the same order have the same addresses. Two jobs that share
// a space cannot take the same bytes.
//
// Reservations may be made by several threads. Their contents are whatever was there before: who reserves clears.
#ifndef TRADEWIND_GRAPH_SPACE_H
#define TRADEWIND_GRAPH_SPACE_H

#include "graph/device.h"

typedef struct space space;

// Every reservation starts at a multiple of this many bytes.
enum { SPACE_ALIGN = 512 };

// Bytes that a reservation takes.
static inline size_t space_aligned(size_t bytes) {
    return (bytes + SPACE_ALIGN - 1) / SPACE_ALIGN * SPACE_ALIGN;
}

// Allocates `bytes`, zeroed. The queue must outlive the space. NULL on failure.
space *space_new(const device *d, queue *q, size_t bytes, err *e);

// A space inside a reservation of another, for a job whose parts come and go while the whole stays. `name` must outlive
// it.
space *space_within(space *outer, const char *name, size_t bytes, err *e);

// All reservations must have been given back.
void space_free(space *s);

// Reserves `bytes`, at least one. NULL, and ERR_RUN with the figures, where no free stretch is large enough. `name`
// must outlive the reservation.
void *space_take(space *s, const char *name, size_t bytes, err *e);
void space_give(space *s, void *at);

size_t space_bytes(const space *s);
size_t space_used(space *s); // reserved now
size_t space_most(space *s); // reserved at most so far

const device *space_device(const space *s);

#endif

// What a plan may take of a device: the one place that knows the user's limit.
//
// The limit counts what a card's own monitor counts for this process: the base (context, kernels, recordings) and the
// slab. The base is measured before there is a slab, so a run looks once more when its steps are recorded
// (budget_holds).
#ifndef TRADEWIND_TRAIN_BUDGET_H
#define TRADEWIND_TRAIN_BUDGET_H

#include "graph/device.h"
#include "train/settings.h"

typedef struct {
    bool limited; // the user set a limit, and the device is a card
    bool counted; // the card's monitor says what the base is
    size_t limit; // bytes of the card that this process may take
    size_t base;
    size_t others, total; // bytes of the card that others hold, and all that it has; 0 where nobody counts
    size_t slab;          // bytes that a slab may take: within the limit, and what is free
} budget;

// Before a slab is taken. A limit that is more than the card has is ERR_INPUT; one that nobody can count is ERR_RUN.
bool budget_make(budget *b, const config *c, const settings *s, const device *d, const queue *q, err *e);

// Whether a slab of `need` bytes fits; ERR_RUN with the figures, and with the smallest limit that would do where the
// limit is what is in the way.
bool budget_fits(const budget *b, size_t need, const char *device, err *e);

// Whether the limit, rather than the memory that is free, keeps such a slab out.
bool budget_is_low(const budget *b, size_t need);

// Whether others hold so much of the card that the limit, or without one 95 % of the card, cannot be had; a line that
// says so.
bool budget_is_shared(const budget *b, char *line, size_t room);

// Whether what the monitor counts now is within the limit; ERR_RUN otherwise.
bool budget_holds(const budget *b, const device *d, const queue *q, err *e);

#endif

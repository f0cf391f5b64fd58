// Memory that a plan may take of a machine: the one place that knows the user's limits.
//
// A card's limit counts what its own monitor counts for this process: the base (context, kernels, recordings) and the
// slab. The base is measured before there is a slab, so an allowance stands for what is loaded later, recordings are
// counted by the call, and a run looks once more when its steps are recorded (budget_holds). The CPU's limit counts the
// anonymous memory of the process, which is all but mapped files: what is there when the plan is made (data in memory
// included), the slab, the loader's ring, and the copies of the weights that the trainer and a checkpoint make. Beside
// a card, the host's limit counts ring and copies alone.
#ifndef TRADEWIND_TRAIN_BUDGET_H
#define TRADEWIND_TRAIN_BUDGET_H

#include "graph/device.h"
#include "train/settings.h"

typedef struct {
    bool host;           // the device computes in the host's memory
    bool whole;          // the description does not let a batch be split
    const char *smaller; // keys whose smaller values shrink a plan
    bool limited;        // the user set a limit of the device's memory
    bool counted;        // the base is known
    size_t limit;        // bytes of the device that this process may take
    double asked;        // bytes of the user's limit where that is a little more than the card has; else 0
    size_t base;         // bytes that it has taken, the spaces of other jobs included
    size_t others;       // of a card: bytes that others hold,
    size_t total;        // and all that it has; 0 where nobody counts
    size_t allowance;    // bytes that it will take beside the slab, unplanned
    size_t free;         // bytes of the device that nobody holds
    size_t slab;         // of them those that a slab may take: within the limit, and less the allowance
    size_t host_limit;   // beside a card: bytes for ring and copies; 0: no limit
} budget;

// Memory that a plan needs: on the device, and of the host beside it. On the CPU it is all the same memory.
typedef struct {
    size_t slab, ring, copies;
    size_t recorded; // beside the slab: what a card's recordings of the steps take
} demand;

// Before the job's own space is taken. A limit that is more than the card, or the machine or its container, has is
// ERR_INPUT; one that nobody can count is ERR_RUN. Up to 3 % more than the card has stands for all of it.
bool budget_make(budget *b, const config *c, const settings *s, const device *d, const queue *q, err *e);

// Bytes of the device that a plan takes: what is planned, and on a card its recordings; what must fit into `slab`.
size_t budget_need(const budget *b, const demand *n);

// The planned part of a demand; and the allowance beside it and the base: recordings, and memory that nobody plans.
size_t budget_planned(const budget *b, const demand *n);
size_t budget_beside(const budget *b, const demand *n);

// True if a plan fits.
bool budget_takes(const budget *b, const demand *n);

// The same; ERR_RUN with the figures, and with the smallest limit that would do where a limit is what is in the way.
bool budget_fits(const budget *b, const demand *n, const char *device, err *e);

// True if the limit, rather than the free memory, keeps a plan out.
bool budget_is_low(const budget *b, const demand *n);

// The smallest limit, in bytes, under which a plan fits; and in GB of 2^30 bytes, rounded up to what can be typed and
// also does for the next process, whose base may be a little larger.
size_t budget_least(const budget *b, const demand *n);
double budget_gb(size_t bytes);

// True if others hold so much of the card that the limit, or without one 95 % of the card, cannot be had; a line that
// says so.
bool budget_is_shared(const budget *b, char *line, size_t room);

// True if the user's limit was a little more than the card has, which is the limit then; a line that says so.
bool budget_is_lowered(const budget *b, char *line, size_t room);

// Compares the monitor's count, once steps were recorded, with the limit; ERR_RUN above it.
bool budget_holds(const budget *b, const device *d, const queue *q, err *e);

#endif

// From what a description says of the learning rate to the numbers that the device computes it from (ops/schedule.h).
#ifndef TRADEWIND_TRAIN_SCHEDULE_H
#define TRADEWIND_TRAIN_SCHEDULE_H

#include "ops/attr.h"
#include "train/plateau.h"

// `RATE_PLATEAU` is constant on the device: the trainer sets the step's rate from a plateau at the end of an epoch.
typedef enum {
    RATE_CONSTANT,
    RATE_COSINE,
    RATE_LINEAR,
    RATE_STEP,
    RATE_EXPONENTIAL,
    RATE_ONE_CYCLE,
    RATE_PLATEAU,
    RATE_KINDS
} rate_kind;

typedef struct {
    rate_kind kind;
    int64_t warmup;          // updates
    int64_t total;           // updates of the run; 0: as many as its epochs have
    int64_t every;           // step, exponential: updates; 0: those of an epoch
    double gamma;            // step, exponential: the factor after that many
    double start;            // factor of the first update of a warm-up
    double end;              // factor at the end of a cosine or a line
    double rise;             // one-cycle: share of the run in which the rate rises
    double divide;           // one-cycle: the first rate is the largest divided by this
    double divide_by;        // one-cycle: the last rate is the first divided by this
    plateau_options plateau; // but `higher`, which the metric says
} rate_options;

// "constant" and so on; NULL for a kind that does not exist.
const char *rate_name(rate_kind k);

// The schedule of a run of `all` updates, in epochs of `updates` each.
lr_schedule rate_schedule(const rate_options *o, int64_t all, int64_t updates);

#endif

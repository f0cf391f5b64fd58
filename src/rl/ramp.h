// Ramps: a number that changes over a run, from its beginning to its end.
#ifndef TRADEWIND_RL_RAMP_H
#define TRADEWIND_RL_RAMP_H

typedef enum { RAMP_CONSTANT, RAMP_LINEAR, RAMP_EXPONENTIAL, RAMP_COSINE, RAMP_KINDS } ramp_kind;

typedef struct {
    ramp_kind kind;
    double from, to; // `to` is not read by a constant one; exponential: both above 0
} ramp;

// The value when a share of the run, from 0 to 1, is done.
double ramp_at(const ramp *r, double done);

// "constant" and so on; NULL for a kind that does not exist.
const char *ramp_name(ramp_kind k);

#endif

// A trial: one operator in a small graph, run on several devices and compared.
//
// Differentiable inputs are parameters, so that every gradient lands in the gradient slab and the two ways of writing a
// gradient (overwrite, add) are both exercised by PASS_FIRST and PASS_NEXT.
#ifndef TRADEWIND_TEST_OPS_TRIAL_H
#define TRADEWIND_TEST_OPS_TRIAL_H

#include "graph/dtype.h"
#include "graph/solo.h"
#include "ops/ops.h"

enum { PLACES_MOST = 8 };

// Where a trial runs, and how close it must come to double precision there.
typedef struct {
    const device *device;
    const char *isa;
    precision precision;
    double tolerance; // of the largest magnitude in a tensor
    card_switches card;
} place;

// The places under test: fp32 on the CPU with every instruction set, or the card in every precision.
int trial_places(place *p);

// Has trial_places name the card with these switches from here on. On cards only.
void trial_switch(card_switches s);

// Element i of floating-point data.
double trial_value(dtype type, const void *v, int64_t i);

typedef struct {
    graph *g;
    int64_t n;      // the size under test: 1, 7, 33, 257
    float offset;   // added to inputs made by trial_input
    uint64_t draws; // random numbers used so far
    float *values;  // [slab elements] of the inputs
    float offsets[16];
    bool grid[16]; // parameters whose values are multiples of 1/8
    void *owned[16];
    int owns;
} trial;

// A random number in [-1, 1), the next of this trial.
float trial_random(trial *t);

// A weight whose values are multiples of 1/8, and a bias that keeps their sums away from 0: products of such values are
// exact in every precision, so that a kink (ReLU) is met on the same side everywhere.
tensor trial_grid(trial *t, shape s);
tensor trial_grid_bias(trial *t, shape s);

// A differentiable input with values in [-bound, bound) plus the trial's offset; trial_weight leaves the offset out.
tensor trial_input(trial *t, shape s, float bound);
tensor trial_weight(trial *t, shape s, float bound);

// A constant of random values in [low, high): floats, or integers.
tensor trial_floats(trial *t, shape s, float low, float high);
tensor trial_integers(trial *t, shape s, int low, int high);

// Weights of the trial's rows, of which every fifth is 0.
tensor trial_row_weights(trial *t);

// The largest size to try: TRADEWIND_TEST_SIZE in the environment, for runs under a slow checker; else no limit.
int64_t trial_size_most(void);

// Memory that lives as long as the trial.
void *trial_memory(trial *t, size_t bytes);

// Fails the test with the error's text.
void trial_ok(bool ok, const err *e);

// Every check of an operator with a gradient, at all sizes, on all devices, with `offset` added to its inputs. Finite
// differences are taken where the offset is 0.
void trial_check_gradient(const char *name, tensor (*build)(trial *), float offset);

#endif

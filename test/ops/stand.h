// A stand: a graph whose results are compared with what its operators are defined to give, on every place.
#ifndef TRADEWIND_TEST_OPS_STAND_H
#define TRADEWIND_TEST_OPS_STAND_H

#include "ops/trial.h"

typedef struct {
    const place *p;
    queue *q;
    graph *g;
    solo *x;
    int64_t rows; // of a micro-batch
} stand;

// Runs a check in double precision and on all places under test; or on devices that may join calls, when they join
// none.
void stand_each(void (*check)(const place *));
void stand_each_alone(void (*check)(const place *));

// The stand owns the graph. Its device holds operators to their traits (ops/strict.h).
stand stand_open(const place *p, graph *g, solo_options o);
void stand_close(stand *s);

void stand_play(stand *s, pass part);

// Where `real` is double.
bool stand_wide(const place *p);

// Element i of what was read from a tensor of real numbers.
double stand_number(const stand *s, const void *v, int64_t i);

// A whole tensor of floating-point numbers: a lasting one is written; a lasting one, or one that the evaluation keeps,
// is read.
void stand_put(stand *s, tensor t, const double *v, int64_t n);
void stand_get(stand *s, tensor t, double *v);

// Sets the step record: these, and more samples than are ever asked for.
void stand_seek(stand *s, uint64_t seed, uint64_t position, uint64_t row);

// Fails unless element i of something is this, within the tolerance.
void stand_near(const char *what, int64_t i, double is, double want, double tolerance);

// Repeatable values in [-1, 1), which fp32 holds exactly, different for each salt.
double stand_value(int64_t i, uint32_t salt);

#endif

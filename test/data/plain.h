// Plain definitions that tests compare with: whole series of doubles, windows summed afresh at every bar.
//
// A series is an array with NAN where it is not defined; NAN spreads through what uses it.
#ifndef TRADEWIND_TEST_DATA_PLAIN_H
#define TRADEWIND_TEST_DATA_PLAIN_H

#include "base/arena.h"
#include "data/bar.h"

typedef struct {
    arena memory;
    int64_t n;
    const bar *bars;
    double *o, *h, *l, *c, *v, *s, *range, *typical, *change, *ret, *tr; // the last three from bar 1 on
} world;

// A series of an expression of t, from bar `from` on, in the world `w`.
#define SERIES(x, from, expression)                                                                                    \
    double *x = plain_series(w);                                                                                       \
    for (int64_t t = (from); t < w->n; t++) (x)[t] = (expression)

void world_open(world *w, const bar *bars, int64_t n);
void world_close(world *w);

// A new series, all NAN, as long as the world.
double *plain_series(world *w);

// Over the n values up to t.
double plain_sum(const double *x, int64_t t, double n);
double plain_mean(const double *x, int64_t t, double n);
double plain_deviation(const double *x, int64_t t, double n); // population
double plain_highest(const double *x, int64_t t, double n);
double plain_lowest(const double *x, int64_t t, double n);

// The value n bars before t.
double plain_lag(const double *x, int64_t t, double n);

// Exponential averages that start as the mean of the first n values: of weight 2 / (n + 1), and 1 / n.
double *plain_ema(world *w, const double *x, double n);
double *plain_wilder(world *w, const double *x, double n);

// a / b, or `otherwise` where b is 0.
double plain_over(double a, double b, double otherwise);

// (close - lowest low) / (highest high - lowest low) of n bars.
double *plain_place(world *w, double n);

// Wilder's average +DM and -DM.
void plain_moves(world *w, double n, double **up, double **down);

#endif

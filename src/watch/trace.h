// A trace: values over time that a figure draws, in bounded memory however many there are.
//
// Once it is full, neighbours are joined two by two, and from then on each point stands for twice as many values: their
// least, mean and most are kept.
#ifndef TRADEWIND_WATCH_TRACE_H
#define TRADEWIND_WATCH_TRACE_H

#include <stdint.h>

enum { TRACE_MOST = 1024 };

typedef struct {
    int count;
    double x[TRACE_MOST], low[TRACE_MOST], mean[TRACE_MOST], high[TRACE_MOST]; // x: of the last value of a point
    int64_t each, open; // values of a whole point; of the last one, 0 where that is whole
} trace;

trace *trace_new(void);
void trace_free(trace *t);

// Adds a value and the range that it is the mean of. Values that are not finite are left out.
void trace_add(trace *t, double x, double low, double mean, double high);

#endif

// A bar: what a market did in one span of time.
#ifndef TRADEWIND_DATA_BAR_H
#define TRADEWIND_DATA_BAR_H

#include <stdint.h>

typedef struct {
    int64_t time; // of its open: seconds since 1970, UTC
    int64_t end;  // of its close, by the calendar of its clock (when_bar_end)
    double open, high, low, close;
    double volume; // ticks, contracts or units, as the source counts them; 0 where it counts none
    double spread; // in points; 0 where unknown
} bar;

#endif

// Time that only moves forward, for durations.
#ifndef TRADEWIND_BASE_CLOCK_H
#define TRADEWIND_BASE_CLOCK_H

#include <time.h>

// Seconds since some moment.
static inline double clock_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif

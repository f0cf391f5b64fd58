// Slow work, for tests of timings.
#ifndef TRADEWIND_TEST_SLOW_H
#define TRADEWIND_TEST_SLOW_H

#include <math.h>
#include <time.h>

// Waits for some seconds, at least, and for four times what the work took: work is then slow by a factor on a machine
// of any speed and load, while a fixed wait would be lost in the noise of a slow one.
static inline void slow_by(double least, double worked) {
    double wait = fmax(least, 4 * worked), whole = floor(wait);
    nanosleep(&(struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)(1e9 * (wait - whole))}, NULL);
}

#endif

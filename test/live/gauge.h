// Memory and open files of this process while many bars flow through it.
#ifndef TRADEWIND_TEST_LIVE_GAUGE_H
#define TRADEWIND_TEST_LIVE_GAUGE_H

#include <stdint.h>

typedef struct {
    const char *name;
    long memory;
    int handles;
} gauge;

// After bar n of `all`: measures at the first tenth, and fails at the end where memory has grown by more than 512 KB
// since, or files are open that were not.
void gauge_check(gauge *g, int64_t n, int64_t all);

#endif

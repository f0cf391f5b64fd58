// Alignment: which slow bar may be used with a fast one.
//
// Bars are stamped at their open. When a fast bar closes, the slow bar around it is still being made; only one that has
// fully closed by then is known: end_slow <= end_fast, where the calendar says when a bar ends. Matching bars by their
// stamps instead hands the fast bar up to a slow bar's length of its own future.
#ifndef TRADEWIND_DATA_ALIGN_H
#define TRADEWIND_DATA_ALIGN_H

#include <stdint.h>

// For each fast bar the row of the last slow bar that has closed when it closes, or -1. Bars are given by their ends,
// in order, equal ones allowed. The slow bar may be old: after a hole in the slow series it is the one before the hole.
// Linear time. At most INT32_MAX slow bars.
void align_rows(const int64_t *fast, int64_t fast_count, const int64_t *slow, int64_t slow_count, int32_t *row);

#endif

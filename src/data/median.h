// The median of a few figures.
#ifndef TRADEWIND_DATA_MEDIAN_H
#define TRADEWIND_DATA_MEDIAN_H

#include <stdlib.h>

// The order of two doubles, for qsort.
static inline int median_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median, by sorting in place; of an even number the greater of the middle two; 0 of none.
static inline double median(double *v, size_t n) {
    qsort(v, n, sizeof *v, median_order);
    return n ? v[n / 2] : 0;
}

#endif

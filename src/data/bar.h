// A bar: the prices of a market in one span of time.
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

enum { BAR_NUMBERS = 8 };

// A moment as a double, which holds whole numbers up to 2^53; what lies beyond is cut to that.
static inline double bar_moment(int64_t time) {
    const int64_t most = (int64_t)1 << 53;
    return (double)(time < -most ? -most : time > most ? most : time);
}

// A bar as numbers, and back.
static inline void bar_save(const bar *b, double *to) {
    const double all[BAR_NUMBERS] = {
        bar_moment(b->time), bar_moment(b->end), b->open, b->high, b->low, b->close, b->volume, b->spread};
    for (int i = 0; i < BAR_NUMBERS; i++) to[i] = all[i];
}

static inline void bar_load(bar *b, const double *from) {
    double time[2];
    for (int i = 0; i < 2; i++) time[i] = from[i] >= -0x1p53 && from[i] <= 0x1p53 ? from[i] : 0;
    *b = (bar){(int64_t)time[0], (int64_t)time[1], from[2], from[3], from[4], from[5], from[6], from[7]};
}

#endif

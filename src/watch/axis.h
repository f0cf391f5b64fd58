// Axes: a range of values and the round ones in it that are labelled.
#ifndef TRADEWIND_WATCH_AXIS_H
#define TRADEWIND_WATCH_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { AXIS_TICKS_MOST = 24 };

typedef struct {
    double low, high; // low < high
    int ticks;
    double at[AXIS_TICKS_MOST];
    double step;     // between them; of times in seconds, the least of months and years
    bool is_time;    // UTC seconds
    double range[2]; // as given
} axis;

// Numbers: steps are 1, 2 or 5 times a power of ten, at most `most` of them, and the ends are whole steps. Ends that
// are equal, reversed or not finite give a range around the first, or 0 to 1.
axis axis_numbers(double low, double high, int most);

// Whole numbers, such as epochs: ends stay as they are and steps are 1 or more.
axis axis_counts(double low, double high, int most);

// Moments: ends stay as they are, ticks are at round times, days, months or years. Ends that no calendar has are
// numbers.
axis axis_times(double low, double high, int most);

// A tick's label, as exact as its step: "0.25", "10,000", "2024-03", "14:30".
const char *axis_label(const axis *a, double value, char *text, size_t room);

// "2024-01-02", with " 03:05" where the step is shorter than a day.
const char *axis_moment(double time, bool clock, char *text, size_t room);

#endif

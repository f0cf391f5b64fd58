// A curve of equity or prices by calendar day: the last value of each day that has bars, and simple returns from day to
// day. The first day has no return. A day begins at midnight of the clock that the bars' times are of.
#ifndef TRADEWIND_BACKTEST_DAILY_H
#define TRADEWIND_BACKTEST_DAILY_H

#include "base/err.h"

#include <stdint.h>

typedef struct {
    int64_t days;  // that have bars
    double *last;  // [days] last value of each
    double *back;  // [backs] last[i + 1] / last[i] - 1
    int64_t backs; // days - 1; 0 where a last value is 0 or less, since returns on nothing mean nothing
    bool ruined;   // a last value is 0 or less
} daily;

// `time` [bars] never falls; there is at least one bar. On failure (ERR_RUN) there is nothing to give back.
bool daily_make(const int64_t *time, const double *value, int64_t bars, daily *d, err *e);
void daily_done(daily *d);

// Days with bars in a mean year of 365.2425 days: those from the first to the last bar, scaled to a year. Where bars
// reach over less than a year holidays and the place of weekends count for too much: then it is the number of weekdays
// that have bars, times the weeks in a year.
double daily_a_year(const int64_t *time, int64_t bars);

// Years of 365.2425 days between two moments.
double daily_years(int64_t from, int64_t to);

#endif

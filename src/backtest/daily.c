#include "backtest/daily.h"

#include <stdlib.h>

enum { SECONDS = 86400 };

static const double DAYS_A_YEAR = 365.2425;

static int64_t day_of(int64_t time) {
    return time / SECONDS - (time % SECONDS < 0);
}

// The first bar of the next day, or the end.
static int64_t next_day(const int64_t *time, int64_t bars, int64_t from) {
    int64_t midnight = (day_of(time[from]) + 1) * SECONDS;
    while (from < bars && time[from] < midnight) from++;
    return from;
}

bool daily_make(const int64_t *time, const double *value, int64_t bars, daily *d, err *e) {
    CHECK(bars > 0, "%lld bars", (long long)bars);
    int64_t days = 0;
    for (int64_t i = 0; i < bars; i = next_day(time, bars, i)) days++;
    *d = (daily){.days = days, .last = malloc((size_t)days * 2 * sizeof *d->last)};
    if (!d->last) return err_run(e, "out of memory for %lld days", (long long)days);
    d->back = d->last + days;
    for (int64_t i = 0, at = 0; i < bars; at++) {
        i = next_day(time, bars, i);
        d->last[at] = value[i - 1];
    }
    for (int64_t i = 0; i < days; i++) d->ruined |= !(d->last[i] > 0);
    d->backs = d->ruined ? 0 : days - 1;
    for (int64_t i = 0; i < d->backs; i++) d->back[i] = d->last[i + 1] / d->last[i] - 1;
    return true;
}

void daily_done(daily *d) {
    free(d->last);
    *d = (daily){0};
}

double daily_a_year(const int64_t *time, int64_t bars) {
    CHECK(bars > 0, "%lld bars", (long long)bars);
    int64_t days = 0, reach = day_of(time[bars - 1]) - day_of(time[0]) + 1;
    unsigned weekdays = 0;
    for (int64_t i = 0; i < bars; i = next_day(time, bars, i)) {
        days++;
        weekdays |= 1u << ((day_of(time[i]) % 7 + 7) % 7);
    }
    if ((double)reach < DAYS_A_YEAR) return __builtin_popcount(weekdays) * DAYS_A_YEAR / 7;
    return (double)days * DAYS_A_YEAR / (double)reach;
}

double daily_years(int64_t from, int64_t to) {
    return (double)(to - from) / SECONDS / DAYS_A_YEAR;
}

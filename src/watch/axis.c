#include "watch/axis.h"

#include "base/term.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { DAY = 86400, MONTH = 28 * DAY, YEAR = 365 * DAY };

// Numbers

static double nice_step(double span, int most) {
    double raw = span / most, power = pow(10, floor(log10(raw))), unit = raw / power * (1 - 1e-9);
    return power * (unit <= 1 ? 1 : unit <= 2 ? 2 : unit <= 5 ? 5 : 10);
}

static void repair(double *low, double *high) {
    if (!isfinite(*high - *low)) {
        *low = 0;
        *high = 1;
    }
    if (*high > *low && *high - *low > 1e-12 * (fabs(*low) + fabs(*high))) return;
    double half = *low != 0 ? fabs(*low) / 2 : 0.5;
    *high = *low + half;
    *low -= half;
}

static void put_ticks(axis *a) {
    double first = ceil(a->low / a->step - 1e-9);
    for (int i = 0; a->ticks < AXIS_TICKS_MOST; i++) {
        double v = (first + i) * a->step;
        if (v > a->high + 1e-9 * a->step) break;
        a->at[a->ticks++] = v == 0 ? 0 : v; // never -0
    }
}

axis axis_numbers(double low, double high, int most) {
    repair(&low, &high);
    axis a = {.range = {low, high}, .step = nice_step(high - low, most)};
    a.low = floor(low / a.step + 1e-9) * a.step;
    a.high = ceil(high / a.step - 1e-9) * a.step;
    put_ticks(&a);
    return a;
}

axis axis_counts(double low, double high, int most) {
    repair(&low, &high);
    axis a = {.low = low, .high = high, .range = {low, high}, .step = fmax(1, nice_step(high - low, most))};
    put_ticks(&a);
    return a;
}

// Times

static const double steps[] = {1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, DAY,
    2.0 * DAY, 7.0 * DAY, 14.0 * DAY, MONTH, 2.0 * MONTH, 3.0 * MONTH, 6.0 * MONTH, YEAR, 2.0 * YEAR, 5.0 * YEAR,
    10.0 * YEAR, 50.0 * YEAR};

// Moments beyond these, as a damaged file may have them, have no calendar.
static const double time_most = 1e11;

static struct tm calendar(double time) {
    struct tm t = {0};
    time_t at = (time_t)fmax(-time_most, fmin(time_most, time));
    gmtime_r(&at, &t);
    return t;
}

static double month_start(int month) {
    struct tm t = {.tm_year = month / 12, .tm_mon = month % 12, .tm_mday = 1};
    return (double)timegm(&t);
}

// Months since 1900 of a moment.
static int month_of(double time) {
    struct tm t = calendar(time);
    return 12 * t.tm_year + t.tm_mon;
}

static void put_months(axis *a) {
    int by = a->step < YEAR ? (int)(a->step / MONTH) : 12 * (int)(a->step / YEAR);
    for (int m = month_of(a->low) / by * by; a->ticks < AXIS_TICKS_MOST; m += by) {
        double v = month_start(m);
        if (v > a->high) break;
        if (v >= a->low) a->at[a->ticks++] = v;
    }
}

axis axis_times(double low, double high, int most) {
    size_t i = 0, count = sizeof steps / sizeof *steps;
    repair(&low, &high);
    if (fmax(fabs(low), fabs(high)) > time_most) return axis_numbers(low, high, most);
    while (i + 1 < count && (high - low) / steps[i] > most) i++;
    axis a = {.low = low, .high = high, .range = {low, high}, .step = steps[i], .is_time = true};
    if (a.step < MONTH)
        put_ticks(&a);
    else
        put_months(&a);
    return a;
}

const char *axis_moment(double time, bool clock, char *text, size_t room) {
    struct tm t = calendar(time);
    strftime(text, room, clock ? "%Y-%m-%d %H:%M" : "%Y-%m-%d", &t);
    return text;
}

static const char *time_label(const axis *a, double value, char *text, size_t room) {
    struct tm t = calendar(value);
    const char *format = a->step >= YEAR    ? "%Y"
                         : a->step >= MONTH ? "%Y-%m"
                         : a->step >= DAY   ? "%m-%d"
                         : a->step >= 60    ? "%H:%M"
                                            : "%H:%M:%S";
    strftime(text, room, format, &t);
    return text;
}

const char *axis_label(const axis *a, double value, char *text, size_t room) {
    if (a->is_time) return time_label(a, value, text, room);
    int decimals = (int)fmax(0, ceil(-log10(a->step) - 1e-9));
    double most = fmax(fabs(a->low), fabs(a->high));
    if (decimals > 6 || most >= 1e9)
        snprintf(text, room, "%.3g", value);
    else if (decimals == 0)
        term_count(text, room, value);
    else
        snprintf(text, room, "%.*f", decimals, value);
    return text;
}

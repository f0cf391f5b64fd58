#include "data/extent.h"

#include "data/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Longest first, so that a text is the shortest one.
static const struct {
    char letter;
    extent_unit unit;
    int64_t of;
} units[] = {
    {'y', EXTENT_MONTHS, 12},
    {'M', EXTENT_MONTHS, 1},
    {'w', EXTENT_SECONDS, WHEN_WEEK},
    {'d', EXTENT_SECONDS, WHEN_DAY},
    {'h', EXTENT_SECONDS, WHEN_HOUR},
};

enum { UNITS = sizeof units / sizeof *units, DIGITS_MOST = 9 };

static bool no_extent(const char *text, err *e) {
    size_t n = strlen(text);
    if (n && text[n - 1] == 'm')
        return err_input(e, "%s: months are written with a large M, as in 24M, and minutes as a number of bars", text);
    return err_input(e,
        "%s is no span: write a number of bars (2000), a time (12h, 180d, 4w, 24M, 2y) or a date (2019-01-01)", text);
}

bool extent_read(const char *text, extent *x, err *e) {
    size_t n = strlen(text), digits = strspn(text, "0123456789");
    when_stamp s;
    if (strchr(text, '-') && when_read(text, n, &s) && s.shape == WHEN_DATE) {
        *x = (extent){EXTENT_DATE, s.time};
        return true;
    }
    if (!digits || n > digits + 1) return no_extent(text, e);
    if (digits > DIGITS_MOST) return err_input(e, "%s is too long a span; write at most %d digits", text, DIGITS_MOST);
    *x = (extent){EXTENT_MOMENTS, strtoll(text, NULL, 10)};
    if (n == digits) return true;
    for (int i = 0; i < UNITS; i++)
        if (units[i].letter == text[digits]) {
            // Beyond the calendar that is accepted: any span of it is shorter than this.
            int64_t most = units[i].unit == EXTENT_MONTHS ? 12 * 300 : (int64_t)300 * 366 * WHEN_DAY;
            if (x->count > most / units[i].of) return err_input(e, "%s is too long a span; write at most 300y", text);
            *x = (extent){units[i].unit, x->count * units[i].of};
            return true;
        }
    return no_extent(text, e);
}

char *extent_text(char text[EXTENT_TEXT_ROOM], extent x) {
    if (x.unit == EXTENT_DATE) return when_text(text, EXTENT_TEXT_ROOM, x.count);
    for (int i = 0; i < UNITS; i++)
        if (units[i].unit == x.unit && x.count % units[i].of == 0) {
            snprintf(text, EXTENT_TEXT_ROOM, "%lld%c", (long long)(x.count / units[i].of), units[i].letter);
            return text;
        }
    snprintf(text, EXTENT_TEXT_ROOM, "%lld", (long long)x.count);
    return text;
}

int64_t extent_months_on(int64_t time, int64_t months) {
    when_parts p = when_split(time);
    int64_t all = p.year * (int64_t)12 + p.month - 1 + months;
    int64_t year = all / 12 - (all % 12 < 0);
    int month = (int)(all - year * 12) + 1, day = p.day;
    while (!when_date_ok((int)year, month, day) && day > 28) day--;
    return when_day((int)year, month, day) * WHEN_DAY + time - when_day(p.year, p.month, p.day) * WHEN_DAY;
}

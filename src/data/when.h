// Moments: the calendar, time stamps as files write them, and the zones that their clocks show.
//
// A moment is seconds since 1970, in UTC or on some clock ("local"); years 1900 to 2199 are accepted from outside. A
// zone is read once and never changes afterwards, so threads may share it. Nothing here asks libc for the time zone or
// the locale, and nothing asks what time it is now.
#ifndef TRADEWIND_DATA_WHEN_H
#define TRADEWIND_DATA_WHEN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { WHEN_HOUR = 3600, WHEN_DAY = 86400, WHEN_WEEK = 7 * WHEN_DAY, WHEN_YEAR_FIRST = 1900, WHEN_YEAR_LAST = 2199 };

// The span that stands for one calendar month, as seconds: the mean length of a month. Multiples stand for several.
enum { WHEN_MONTH = 2629746 };

typedef struct {
    int year, month, day; // 1..12, 1..31
    int hour, minute, second;
    int weekday; // 0 is Monday, 6 Sunday
} when_parts;

// Days since 1970-01-01 of a date of the Gregorian calendar; any year.
int64_t when_day(int year, int month, int day);

// Days since 1970-01-01 of the day in which a moment lies.
int64_t when_day_of(int64_t time);
bool when_date_ok(int year, int month, int day);
when_parts when_split(int64_t time);
int when_weekday(int64_t time);

// "2024-01-02", with " 03:05" unless it is midnight, with seconds where there are any. Returns `buf`.
char *when_text(char *buf, size_t n, int64_t time);

// The same, with the time at midnight too, for columns that other programs read.
char *when_moment_text(char *buf, size_t n, int64_t time);

// A duration as people say it, in its largest unit: "5 min", "1 h", "2.5 days"; "1 week" and "1 month" for spans of
// whole ones. Returns `buf`.
char *when_span_text(char *buf, size_t n, int64_t seconds);

// The span that a step between two bars speaks of: that of whole calendar months where the step is 3 days or less off
// them, so that months of 28 to 31 days and those that open on the first day of trading are one span; otherwise the
// step itself.
int64_t when_step_span(int64_t step);

// Spans from one open to a later one, both on the zone's clock: calendar months by their number, weeks to the nearest,
// as holidays move the opens of both; shorter spans only where they are whole.
int64_t when_spans_between(int64_t from, int64_t to, int64_t span);

typedef enum {
    WHEN_DATE,    // 2024.01.02, 2024-01-02, 2024/1/2, 02.01.2024, 20240102, Jan 02, 2024 or 02-Jan-2024
    WHEN_TIME,    // a date of these forms and a time of day
    WHEN_COMPACT, // 20240102 170000, as HistData writes it
    WHEN_TICK,    // 20240102 170000123, as HistData writes ticks
    WHEN_EPOCH,   // a count since 1970: seconds, milli-, micro- or nanoseconds by its number of digits
} when_shape;

typedef struct {
    int64_t time; // whole seconds; a fraction is cut off
    bool utc;     // the stamp names its own offset (Z, +02:00, GMT+0200), which is already taken off
    int offset;   // in minutes east of Greenwich, where it names one
    when_shape shape;
} when_stamp;

// The order of day, month and year in dates such as 03/04/2024.
typedef enum { WHEN_ORDER_NONE, WHEN_DMY, WHEN_MDY, WHEN_YMD } when_order;

// "dmy", "mdy" or "ymd" to an order, and back; "" for none.
bool when_order_read(const char *text, when_order *order);
const char *when_order_text(when_order order);

// Reads a stamp of exactly `n` bytes. False where it is none, also for dates like 03/04/2024, whose order is anyone's
// guess; with dots, as in 03.04.2024, the day is first. Digits alone are a date (8), a date and time (14), or an epoch
// (9 to 11 seconds, 12 and 13 milliseconds, 15 and 16 microseconds, 18 and 19 nanoseconds); a negative count of 7 to 11
// digits is seconds before 1970. The time of day may have AM or PM behind it.
bool when_read(const char *text, size_t n, when_stamp *s);

// The same where the order of such dates is known, with marks - . or /. A year of two digits is one from 1970 to 2069.
// A year of four digits in front is followed by month and day whatever the order.
bool when_read_as(const char *text, size_t n, when_order order, when_stamp *s);

// True where a stamp begins with a date that needs an order. `*order` is the one that its numbers show: a first number
// over 12 is a day, and so is a second one; none where both may be either, or the year has two digits.
bool when_order_of(const char *text, size_t n, when_order *order);

// Reads a time of day, HH:MM or HH:MM:SS with or without a fraction, with or without AM or PM, or HHMMSS, as seconds
// since midnight.
bool when_read_clock(const char *text, size_t n, int64_t *seconds);

typedef struct when_zone when_zone;

// A zone by name; NULL, with the reason, where there is none.
//   "UTC", "GMT", "EST" (five hours behind all year), "+2", "-05:30", "UTC+2"
//   "mt5": what most MetaTrader servers show, New York's clock and seven hours: UTC+2, or UTC+3 while the United States
//          have daylight saving (their rules since 1967), so that the trading day ends at midnight
//   "Europe/Berlin" and all else: the system's zoneinfo ($TZDIR or /usr/share/zoneinfo), whose last rule is taken to
//          hold to the end of WHEN_YEAR_LAST
when_zone *when_zone_new(const char *name, err *e);
void when_zone_free(when_zone *z);

typedef enum {
    WHEN_PLAIN,
    WHEN_AMBIGUOUS, // shown twice, as clocks went back
    WHEN_SKIPPED,   // never shown, as clocks went forward
} when_kind;

// The UTC moment at which the zone's clock shows `local`. A time shown twice is the earlier moment, unless `before`,
// the moment of the row before it, is already that late: then it is the later one, so that both passes of a repeated
// hour keep their order. A time never shown is read with the offset before the change: 02:30 in a skipped hour is what
// 03:30 is called. `*hint` starts at 0 and makes neighbouring calls fast; give each thread its own.
int64_t when_utc(const when_zone *z, int64_t local, int64_t before, size_t *hint, when_kind *kind);

// The moment that the zone's clock shows, as seconds, at a UTC moment.
int64_t when_local(const when_zone *z, int64_t utc, size_t *hint);

// The UTC moment at which a bar closes that opens at `open`: the first at which the zone's clock shows the local open
// and its span, or a later time where it jumps over that one, so that a day over a clock change has 23 or 25 hours, and
// a month its own length. A month that opens on the last day of one ends on the last day of the next. Bars of up to an
// hour last their span: clocks change between them.
int64_t when_bar_end(const when_zone *z, int64_t open, int64_t span, size_t *hint);

#endif

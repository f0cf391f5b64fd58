#include "data/when.h"

#include <stdio.h>
#include <string.h>

// The count of days follows H. Hinnant's description: years begin in March, so that a leap day ends its year, and 400
// years are 146097 days.
int64_t when_day(int year, int month, int day) {
    int64_t y = (int64_t)year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool when_date_ok(int year, int month, int day) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < WHEN_YEAR_FIRST || year > WHEN_YEAR_LAST || month < 1 || month > 12 || day < 1) return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= days[month - 1] + (month == 2 && leap);
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

int64_t when_day_of(int64_t time) {
    return floor_div(time, WHEN_DAY);
}

int when_weekday(int64_t time) {
    int64_t day = when_day_of(time) + 3; // 1970-01-01 was a Thursday
    return (int)(day - 7 * floor_div(day, 7));
}

when_parts when_split(int64_t time) {
    int64_t day = when_day_of(time), second = time - day * WHEN_DAY;
    int64_t z = day + 719468, era = floor_div(z, 146097), of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    when_parts p = {.day = (int)(of_year - (153 * m + 2) / 5 + 1), .month = (int)(m < 10 ? m + 3 : m - 9)};
    p.year = (int)(y + era * 400 + (p.month <= 2));
    p.hour = (int)(second / 3600);
    p.minute = (int)(second / 60 % 60);
    p.second = (int)(second % 60);
    p.weekday = when_weekday(time);
    return p;
}

char *when_moment_text(char *buf, size_t n, int64_t time) {
    when_parts p = when_split(time);
    int used = snprintf(buf, n, "%04d-%02d-%02d %02d:%02d", p.year, p.month, p.day, p.hour, p.minute);
    if (p.second && used > 0 && (size_t)used < n) snprintf(buf + used, n - (size_t)used, ":%02d", p.second);
    return buf;
}

char *when_text(char *buf, size_t n, int64_t time) {
    when_parts p = when_split(time);
    if (p.hour || p.minute || p.second) return when_moment_text(buf, n, time);
    snprintf(buf, n, "%04d-%02d-%02d", p.year, p.month, p.day);
    return buf;
}

int64_t when_step_span(int64_t step) {
    int64_t months = (step + WHEN_MONTH / 2) / WHEN_MONTH, off = step - months * WHEN_MONTH;
    return months > 0 && off <= 3 * WHEN_DAY && off >= -3 * WHEN_DAY ? months * WHEN_MONTH : step;
}

int64_t when_spans_between(int64_t from, int64_t to, int64_t span) {
    if (span % WHEN_MONTH == 0) {
        when_parts a = when_split(from), b = when_split(to);
        return ((int64_t)(b.year - a.year) * 12 + b.month - a.month) / (span / WHEN_MONTH);
    }
    return (to - from + (span % WHEN_WEEK ? 0 : span / 2)) / span;
}

char *when_span_text(char *buf, size_t n, int64_t seconds) {
    double v = (double)seconds;
    int64_t whole = seconds % WHEN_MONTH ? WHEN_WEEK : WHEN_MONTH;
    if (seconds > 0 && seconds % whole == 0)
        snprintf(buf, n, "%lld %s%s", (long long)(seconds / whole), whole == WHEN_WEEK ? "week" : "month",
            seconds == whole ? "" : "s");
    else if (seconds >= WHEN_DAY)
        snprintf(
            buf, n, v < 1000.0 * WHEN_DAY ? "%.3g day%s" : "%.0f day%s", v / WHEN_DAY, seconds == WHEN_DAY ? "" : "s");
    else if (seconds >= 3600)
        snprintf(buf, n, "%.3g h", v / 3600);
    else if (seconds >= 60)
        snprintf(buf, n, "%.3g min", v / 60);
    else
        snprintf(buf, n, "%d s", (int)seconds);
    return buf;
}

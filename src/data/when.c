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

int when_weekday(int64_t time) {
    int64_t day = floor_div(time, WHEN_DAY) + 3; // 1970-01-01 was a Thursday
    return (int)(day - 7 * floor_div(day, 7));
}

when_parts when_split(int64_t time) {
    int64_t day = floor_div(time, WHEN_DAY), second = time - day * WHEN_DAY;
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

char *when_text(char *buf, size_t n, int64_t time) {
    when_parts p = when_split(time);
    if (p.second)
        snprintf(buf, n, "%04d-%02d-%02d %02d:%02d:%02d", p.year, p.month, p.day, p.hour, p.minute, p.second);
    else if (p.hour || p.minute)
        snprintf(buf, n, "%04d-%02d-%02d %02d:%02d", p.year, p.month, p.day, p.hour, p.minute);
    else
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
        snprintf(buf, n, "%.3g day%s", v / WHEN_DAY, seconds == WHEN_DAY ? "" : "s");
    else if (seconds >= 3600)
        snprintf(buf, n, "%.3g h", v / 3600);
    else if (seconds >= 60)
        snprintf(buf, n, "%.3g min", v / 60);
    else
        snprintf(buf, n, "%d s", (int)seconds);
    return buf;
}

// Text being read, from `at` up to `end`.
typedef struct {
    const char *at, *end;
} cursor;

static size_t left(const cursor *c) {
    return (size_t)(c->end - c->at);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool take(cursor *c, char want) {
    if (c->at == c->end || *c->at != want) return false;
    c->at++;
    return true;
}

// Exactly `digits` digits; -1 where there are fewer.
static int number(cursor *c, size_t digits) {
    if (left(c) < digits) return -1;
    int v = 0;
    for (size_t i = 0; i < digits; i++) {
        if (!is_digit(c->at[i])) return -1;
        v = v * 10 + (c->at[i] - '0');
    }
    c->at += digits;
    return v;
}

static size_t digits_ahead(const cursor *c) {
    size_t n = 0;
    while (n < left(c) && is_digit(c->at[n])) n++;
    return n;
}

static void skip_fraction(cursor *c) {
    cursor ahead = *c;
    if (!take(&ahead, '.') && !take(&ahead, ',')) return;
    size_t n = digits_ahead(&ahead);
    if (n) c->at = ahead.at + n;
}

static bool clock_ok(int hour, int minute, int second) {
    return hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
}

static bool read_clock(cursor *c, int64_t *seconds) {
    int hour = number(c, digits_ahead(c) == 1 ? 1 : 2);
    if (hour < 0 || !take(c, ':')) return false;
    int minute = number(c, 2), second = 0;
    if (minute >= 0 && take(c, ':')) {
        second = number(c, 2);
        skip_fraction(c);
    }
    if (!clock_ok(hour, minute, second)) return false;
    *seconds = hour * 3600 + minute * 60 + second;
    return true;
}

bool when_read_clock(const char *text, size_t n, int64_t *seconds) {
    cursor c = {text, text + n};
    return read_clock(&c, seconds) && c.at == c.end;
}

static bool take_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    if (left(c) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

// What may follow a time of day: nothing, or the offset of the clock that showed it.
static bool read_offset(cursor *c, when_stamp *s) {
    if (c->at == c->end) return true;
    s->utc = true;
    take(c, ' ');
    if (take(c, 'Z')) return c->at == c->end;
    if ((take_word(c, "UTC") || take_word(c, "GMT")) && c->at == c->end) return true;
    bool west = take(c, '-');
    if (!west && !take(c, '+')) return false;
    int hour = number(c, 2), minute = 0;
    if (hour < 0 || hour > 15) return false;
    if (c->at != c->end) {
        take(c, ':');
        minute = number(c, 2);
        if (minute < 0 || minute > 59) return false;
    }
    s->offset = (west ? -1 : 1) * (hour * 60 + minute);
    s->time -= s->offset * 60;
    return c->at == c->end;
}

static bool set_day(when_stamp *s, int year, int month, int day) {
    if (!when_date_ok(year, month, day)) return false;
    s->time = when_day(year, month, day) * WHEN_DAY;
    s->shape = WHEN_DATE;
    return true;
}

static bool read_date(cursor *c, when_stamp *s) {
    if (left(c) < 10) return false;
    char mark = c->at[4];
    if (mark == '-' || mark == '.' || mark == '/') {
        int year = number(c, 4);
        c->at++;
        int month = number(c, 2);
        if (month < 0 || !take(c, mark)) return false;
        return set_day(s, year, month, number(c, 2));
    }
    int day = number(c, 2);
    if (day < 0 || !take(c, '.')) return false;
    int month = number(c, 2);
    if (month < 0 || !take(c, '.')) return false;
    return set_day(s, number(c, 4), month, day);
}

// 20240102, 20240102170000, 20240102 170000 or 20240102 170000123, `digits` being those of its first word.
static bool read_compact(cursor *c, size_t digits, when_stamp *s) {
    int year = number(c, 4), month = number(c, 2);
    if (!set_day(s, year, month, number(c, 2))) return false;
    if (c->at == c->end) return true;
    bool gap = digits == 8;
    if (gap && !take(c, ' ')) return false;
    size_t more = digits_ahead(c);
    if (more != 6 && !(gap && more == 9)) return false;
    int hour = number(c, 2), minute = number(c, 2), second = number(c, 2);
    if (!clock_ok(hour, minute, second)) return false;
    s->time += hour * 3600 + minute * 60 + second;
    s->shape = more == 9 ? WHEN_TICK : gap ? WHEN_COMPACT : WHEN_TIME;
    c->at += more - 6;
    return c->at == c->end;
}

static bool read_epoch(cursor *c, size_t digits, bool negative, when_stamp *s) {
    static const int64_t unit[] = {[9] = 1,
        [10] = 1,
        [11] = 1,
        [12] = 1000,
        [13] = 1000,
        [15] = 1000000,
        [16] = 1000000,
        [18] = 1000000000,
        [19] = 1000000000};
    if (negative ? digits < 7 || digits > 11 : digits > 19 || !unit[digits]) return false;
    uint64_t v = 0; // 19 digits fit
    for (size_t i = 0; i < digits; i++) v = v * 10 + (uint64_t)(*c->at++ - '0');
    skip_fraction(c);
    s->time = negative ? -(int64_t)v : (int64_t)(v / (uint64_t)unit[digits]);
    s->shape = WHEN_EPOCH;
    int year = when_split(s->time).year;
    return c->at == c->end && year >= WHEN_YEAR_FIRST && year <= WHEN_YEAR_LAST;
}

bool when_read(const char *text, size_t n, when_stamp *s) {
    *s = (when_stamp){0};
    cursor c = {text, text + n};
    bool negative = take(&c, '-');
    size_t digits = digits_ahead(&c);
    if (!negative && (digits == 8 || digits == 14)) return read_compact(&c, digits, s);
    if (negative || digits > 4) return read_epoch(&c, digits, negative, s);
    if (!read_date(&c, s)) return false;
    if (c.at == c.end) return true;
    if (!take(&c, ' ') && !take(&c, 'T')) return false;
    int64_t seconds = 0;
    if (!read_clock(&c, &seconds)) return false;
    s->time += seconds;
    s->shape = WHEN_TIME;
    return read_offset(&c, s);
}

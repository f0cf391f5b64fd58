// Time stamps as files write them.
#include "data/when.h"

#include <string.h>

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

// One or two digits; -1 where there are none or more.
static int small_number(cursor *c) {
    size_t n = digits_ahead(c);
    return n == 1 || n == 2 ? number(c, n) : -1;
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// AM or PM behind an hour from 1 to 12, which becomes one of 24. False where it does not fit.
static bool read_half(cursor *c, int *hour) {
    cursor ahead = *c;
    take(&ahead, ' ');
    if (left(&ahead) < 2 || lower(ahead.at[1]) != 'm') return true;
    char half = lower(*ahead.at);
    if (half != 'a' && half != 'p') return true;
    if (*hour < 1 || *hour > 12) return false;
    *hour = *hour % 12 + (half == 'p' ? 12 : 0);
    c->at = ahead.at + 2;
    return true;
}

static bool read_clock(cursor *c, int64_t *seconds) {
    int hour = small_number(c);
    if (hour < 0 || !take(c, ':')) return false;
    int minute = number(c, 2), second = 0;
    if (minute >= 0 && take(c, ':')) {
        second = number(c, 2);
        skip_fraction(c);
    }
    if (!clock_ok(hour, minute, second) || !read_half(c, &hour)) return false;
    *seconds = hour * 3600 + minute * 60 + second;
    return true;
}

bool when_read_clock(const char *text, size_t n, int64_t *seconds) {
    cursor c = {text, text + n};
    if (n == 6 && digits_ahead(&c) == n) {
        int hour = number(&c, 2), minute = number(&c, 2), second = number(&c, 2);
        *seconds = hour * 3600 + minute * 60 + second;
        return clock_ok(hour, minute, second);
    }
    return read_clock(&c, seconds) && c.at == c.end;
}

static bool take_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    if (left(c) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

// The rest behind a time of day: nothing, or the offset of the clock that showed it.
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

// Three numbers with one mark between them, as 03/04/2024 or 3-4-24.
typedef struct {
    int number[3];
    size_t digits[3];
    char mark;
} triple;

static bool read_triple(cursor *c, triple *t) {
    t->mark = 0;
    for (int i = 0; i < 3; i++) {
        t->digits[i] = digits_ahead(c);
        if (t->digits[i] > 4 || (t->number[i] = number(c, t->digits[i])) < 0 || !t->digits[i]) return false;
        if (i == 2) return true;
        if (!i && c->at < c->end && strchr("-./", *c->at)) t->mark = *c->at;
        if (!t->mark || !take(c, t->mark)) return false;
    }
    return true;
}

// A year of two digits is that of the 1970s to the 2060s.
static int whole_year(int year, size_t digits) {
    return digits == 4 ? year : digits != 2 ? -1 : year < 70 ? 2000 + year : 1900 + year;
}

static bool is_small(const triple *t, int i) {
    return t->digits[i] <= 2;
}

static bool read_numbers(cursor *c, when_order order, when_stamp *s) {
    triple t;
    if (!read_triple(c, &t)) return false;
    const int *v = t.number;
    if (t.digits[0] == 4) return is_small(&t, 1) && is_small(&t, 2) && set_day(s, v[0], v[1], v[2]);
    if (!is_small(&t, 0) || !is_small(&t, 1)) return false;
    if (order == WHEN_YMD) return is_small(&t, 2) && set_day(s, whole_year(v[0], t.digits[0]), v[1], v[2]);
    if (order == WHEN_ORDER_NONE && t.mark == '.' && t.digits[2] == 4) order = WHEN_DMY;
    if (order == WHEN_ORDER_NONE) return false;
    return set_day(s, whole_year(v[2], t.digits[2]), v[order == WHEN_DMY], v[order != WHEN_DMY]);
}

// The month that a word of three letters or more begins, from 1; 0 where none is.
static int read_month(cursor *c) {
    static const char *const names[] = {"january", "february", "march", "april", "may", "june", "july", "august",
        "september", "october", "november", "december"};
    size_t n = 0;
    while (n < left(c) && lower(c->at[n]) >= 'a' && lower(c->at[n]) <= 'z') n++;
    for (int m = 0; n >= 3 && m < 12; m++) {
        size_t same = 0;
        while (same < n && names[m][same] == lower(c->at[same])) same++;
        if (same < n) continue;
        c->at += n;
        take(c, '.');
        return m + 1;
    }
    return 0;
}

// Characters between the words of a date with a month's name.
static bool take_between(cursor *c) {
    bool comma = take(c, ',');
    return take(c, ' ') || take(c, '-') || take(c, '/') || comma;
}

// Jan 02, 2024; 02-Jan-2024; 2 January 2024.
static bool read_named(cursor *c, when_stamp *s) {
    int month = read_month(c), day = 0;
    if (month && !take_between(c)) return false;
    day = small_number(c);
    if (day < 0 || !take_between(c)) return false;
    if (!month && (!(month = read_month(c)) || !take_between(c))) return false;
    size_t digits = digits_ahead(c);
    return digits <= 4 && set_day(s, whole_year(number(c, digits), digits), month, day);
}

static bool read_date(cursor *c, when_order order, when_stamp *s) {
    cursor numbers = *c;
    if (read_numbers(&numbers, order, s)) {
        *c = numbers;
        return true;
    }
    return read_named(c, s);
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
    return when_read_as(text, n, WHEN_ORDER_NONE, s);
}

bool when_read_as(const char *text, size_t n, when_order order, when_stamp *s) {
    *s = (when_stamp){0};
    cursor c = {text, text + n};
    bool negative = take(&c, '-');
    size_t digits = digits_ahead(&c);
    if (!negative && (digits == 8 || digits == 14)) return read_compact(&c, digits, s);
    if (negative || digits > 4) return read_epoch(&c, digits, negative, s);
    if (!read_date(&c, order, s)) return false;
    if (c.at == c.end) return true;
    bool comma = take(&c, ',');
    if (!take(&c, ' ') && !take(&c, 'T') && !comma) return false;
    int64_t seconds = 0;
    if (!read_clock(&c, &seconds)) return false;
    s->time += seconds;
    s->shape = WHEN_TIME;
    return read_offset(&c, s);
}

bool when_order_of(const char *text, size_t n, when_order *order) {
    triple t;
    cursor c = {text, text + n};
    *order = WHEN_ORDER_NONE;
    if (!read_triple(&c, &t) || t.digits[0] > 2 || t.digits[1] > 2) return false;
    if (t.digits[2] == 4 && t.number[0] > 12 && t.number[1] <= 12) *order = WHEN_DMY;
    if (t.digits[2] == 4 && t.number[1] > 12 && t.number[0] <= 12) *order = WHEN_MDY;
    return true;
}

static const char *const orders[] = {"", "dmy", "mdy", "ymd"};

bool when_order_read(const char *text, when_order *order) {
    for (size_t i = 1; i < sizeof orders / sizeof *orders; i++) {
        *order = (when_order)i;
        if (!strcmp(text, orders[i])) return true;
    }
    *order = WHEN_ORDER_NONE;
    return false;
}

const char *when_order_text(when_order order) {
    return orders[order];
}

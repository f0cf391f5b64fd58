#include "live/lines.h"

#include <string.h>

enum { UNKNOWN, PLAIN, LOW_FIRST, HIGH_FIRST };

void lines_reset(lines *l) {
    l->begin = l->end = l->odds = 0;
    l->skips = false;
    l->number = 0;
    l->encoding = UNKNOWN;
}

void lines_drop(lines *l) {
    l->begin = l->end = 0;
    l->skips = false;
    if (l->encoding != UNKNOWN) l->odds = 0;
}

size_t lines_newline(const lines *l) {
    return l->encoding == LOW_FIRST ? 2 : 1;
}

// Moves what is kept to the front.
static void compact(lines *l) {
    memmove(l->byte, l->byte + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
}

// A line without an end that is too long is not kept.
static void drop_long(lines *l) {
    if (l->end - l->begin <= FEED_LINE_MOST || memchr(l->byte + l->begin, '\n', l->end - l->begin)) return;
    l->begin = l->end = 0;
    l->skips = true;
}

size_t lines_room(const lines *l) {
    return LINES_ROOM - (l->end - l->begin) - sizeof l->odd;
}

// The encoding that the first bytes show; UNKNOWN while they are too few.
static int encoding_of(const unsigned char *p, size_t n) {
    if (n >= 2 && p[0] == 0xFF && p[1] == 0xFE) return LOW_FIRST;
    if (n >= 2 && p[0] == 0xFE && p[1] == 0xFF) return HIGH_FIRST;
    if (n >= 2 && p[0] && !p[1]) return LOW_FIRST;
    if (n >= 2 && !p[0] && p[1]) return HIGH_FIRST;
    if (n >= 2 && p[0] != 0xEF) return PLAIN;
    return n >= 3 || (n && p[0] == '\n') ? PLAIN : UNKNOWN;
}

// Bytes of a mark at the beginning.
static size_t mark_of(int encoding, const unsigned char *p, size_t n) {
    if (encoding == PLAIN) return n >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3) ? 3 : 0;
    return (p[0] == 0xFF && p[1] == 0xFE) || (p[0] == 0xFE && p[1] == 0xFF) ? 2 : 0;
}

static void add_wide(lines *l, const unsigned char *p) {
    unsigned unit = l->encoding == LOW_FIRST ? p[0] | (unsigned)p[1] << 8 : p[1] | (unsigned)p[0] << 8;
    l->byte[l->end++] = unit < 128 ? (char)unit : '?';
}

static void add(lines *l, const unsigned char *p, size_t n) {
    if (l->encoding == PLAIN) {
        memcpy(l->byte + l->end, p, n);
        l->end += n;
        return;
    }
    for (; n; p++, n--) {
        l->odd[l->odds++] = *p;
        if (l->odds == 2) {
            add_wide(l, l->odd);
            l->odds = 0;
        }
    }
}

void lines_push(lines *l, const char *bytes, size_t n) {
    const unsigned char *p = (const unsigned char *)bytes;
    CHECK(n <= lines_room(l), "%zu bytes where there is room for %zu", n, lines_room(l));
    compact(l);
    for (; n && l->encoding == UNKNOWN; p++, n--) {
        l->odd[l->odds++] = *p;
        l->encoding = encoding_of(l->odd, l->odds);
        if (l->encoding == UNKNOWN) continue;
        unsigned char first[sizeof l->odd];
        size_t count = l->odds, mark = mark_of(l->encoding, l->odd, count);
        memcpy(first, l->odd, count);
        l->odds = 0;
        add(l, first + mark, count - mark);
    }
    add(l, p, n);
    drop_long(l);
}

static text trimmed(const char *at, size_t n) {
    while (n && (at[n - 1] == ' ' || at[n - 1] == '\r')) n--;
    for (; n && *at == ' '; at++) n--;
    return (text){at, n};
}

lines_answer lines_next(lines *l, text *line) {
    const char *from = l->byte + l->begin;
    const char *end = memchr(from, '\n', l->end - l->begin);
    if (!end) return LINES_NONE;
    size_t n = (size_t)(end - from);
    bool too_long = l->skips || n > FEED_LINE_MOST;
    l->begin += n + 1;
    l->skips = false;
    l->number++;
    *line = too_long ? (text){"", 0} : trimmed(from, n);
    return too_long ? LINES_LONG : LINES_GOT;
}

lines_answer lines_rest(lines *l, text *line) {
    if (l->encoding == UNKNOWN && l->odds) {
        memcpy(l->byte, l->odd, l->odds);
        l->end = l->odds;
        l->odds = 0;
    }
    if (l->begin == l->end && !l->skips) return LINES_NONE;
    size_t n = l->end - l->begin;
    bool too_long = l->skips || n > FEED_LINE_MOST;
    *line = too_long ? (text){"", 0} : trimmed(l->byte + l->begin, n);
    l->begin = l->end = 0;
    l->skips = false;
    l->number++;
    return too_long ? LINES_LONG : LINES_GOT;
}

#include "data/bars_hours_text.h"

#include "data/when.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DAYS = 7, COMB_LEAST = 4, ITEM_MOST = 80 };

typedef struct {
    char *buf;
    size_t n, used;
    const bool *open;
    int64_t slots, span;
    int64_t first[DAYS], last[DAYS]; // open slots; first is -1 where a day has none
} words;

// Slots in a row that are closed on the same days.
typedef struct {
    int64_t from, to; // inclusive
    unsigned days;    // bits
} run;

__attribute__((format(printf, 2, 3))) static void put(words *w, const char *fmt, ...) {
    va_list args;
    if (w->used + 4 >= w->n) return;
    va_start(args, fmt);
    int n = vsnprintf(w->buf + w->used, w->n - w->used, fmt, args);
    va_end(args);
    w->used += (size_t)n;
    if (w->used + 1 < w->n) return;
    w->used = w->n - 1;
    memcpy(w->buf + w->n - 4, "...", 4);
}

static void put_time(words *w, int64_t slot) {
    int64_t t = slot * w->span;
    put(w, "%02d:%02d", (int)(t / WHEN_HOUR), (int)(t / 60 % 60));
    if (w->span % 60) put(w, ":%02d", (int)(t % 60));
}

static void put_times(words *w, int64_t from, int64_t to) {
    put_time(w, from);
    if (to == from) return;
    put(w, "-");
    put_time(w, to);
}

static void put_days(words *w, unsigned days) {
    static const char *const names[DAYS] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    const char *comma = "";
    for (int d = 0; d < DAYS; d++) {
        if (!(days & 1u << d)) continue;
        int to = d;
        while (to + 1 < DAYS && days & 1u << (to + 1)) to++;
        put(w, "%s%s", comma, names[d]);
        if (to > d) put(w, "-%s", names[to]);
        comma = ", ";
        d = to;
    }
}

static void put_open(words *w) {
    const char *comma = "";
    for (int d = 0, to; d < DAYS; d = to) {
        to = d + 1;
        if (w->first[d] < 0) continue;
        unsigned days = 1u << d;
        for (; to < DAYS && w->first[to] == w->first[d] && w->last[to] == w->last[d]; to++) days |= 1u << to;
        put(w, "%s", comma);
        put_days(w, days);
        comma = ", ";
        if (w->slots == 1) continue;
        put(w, " ");
        put_times(w, w->first[d], w->last[d]);
    }
    if (!*comma) put(w, "none: no slot has bars in half of the weeks");
}

// Days on which a slot is closed between open ones; `*inside` has all days on which it lies between.
static unsigned closed_on(const words *w, int64_t slot, unsigned *inside) {
    unsigned days = 0;
    *inside = 0;
    for (int d = 0; d < DAYS; d++) {
        if (w->first[d] < 0 || slot < w->first[d] || slot > w->last[d]) continue;
        *inside |= 1u << d;
        if (!w->open[d * w->slots + slot]) days |= 1u << d;
    }
    return days;
}

static bool next_run(const words *w, int64_t slot, run *r, bool *some) {
    unsigned inside;
    *some = false;
    for (; slot < w->slots; slot++) {
        unsigned days = closed_on(w, slot, &inside);
        if (!days) continue;
        *r = (run){slot, slot, days};
        *some = days != inside;
        while (r->to + 1 < w->slots && closed_on(w, r->to + 1, &inside) == days) {
            r->to++;
            *some |= days != inside;
        }
        return true;
    }
    return false;
}

// How many runs follow `r` at equal distances, like it; `*end` is the last of them.
static int comb(const words *w, run r, run *end) {
    int64_t step = 0;
    int n = 0;
    bool some;
    run next;
    *end = r;
    while (next_run(w, end->to + 1, &next, &some)) {
        bool alike = next.days == r.days && next.to - next.from == r.to - r.from;
        if (!alike || (n && next.from - end->from != step)) break;
        step = next.from - end->from;
        *end = next;
        n++;
    }
    return n;
}

static void put_closed(words *w, bool *pattern) {
    run r, end;
    bool some, full = false;
    const char *before = "; closed inside: ";
    for (int64_t slot = 0; next_run(w, slot, &r, &some); slot = r.to + 1, before = ", ") {
        char step[32];
        int more = comb(w, r, &end);
        *pattern |= some || more + 1 >= COMB_LEAST;
        if (w->used + ITEM_MOST >= w->n) { // a whole item may not fit any more
            if (!full) put(w, "%s", before[0] == ';' ? "; closed inside at times" : ", and others");
            full = true;
            if (more + 1 >= COMB_LEAST) r = end;
            continue;
        }
        put(w, "%s", before);
        put_days(w, r.days);
        put(w, " ");
        put_times(w, r.from, r.to);
        if (more + 1 < COMB_LEAST) continue;
        put(w, " and every %s to ", when_span_text(step, sizeof step, (end.from - r.from) / more * w->span));
        put_time(w, end.from);
        r = end;
    }
}

char *bars_hours_text(char *buf, size_t n, const bool *open, int64_t slots, int64_t span, bool *pattern) {
    words w = {.buf = buf, .n = n, .open = open, .slots = slots, .span = span};
    buf[0] = 0;
    for (int d = 0; d < DAYS; d++) {
        w.first[d] = -1;
        for (int64_t i = 0; i < slots; i++) {
            if (!open[d * slots + i]) continue;
            if (w.first[d] < 0) w.first[d] = i;
            w.last[d] = i;
        }
    }
    put_open(&w);
    put_closed(&w, pattern);
    return buf;
}

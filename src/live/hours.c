#include "live/hours.h"

#include "data/bars_hours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char symbol[BARS_SYMBOL_ROOM];
    int64_t span;
    when_zone *zone;
    bars_hours *open;
} market;

struct hours {
    market *market;
    int count;
};

hours *hours_new(void) {
    hours *h = calloc(1, sizeof *h);
    NEED(h, "no memory for the hours of markets");
    return h;
}

void hours_free(hours *h) {
    if (!h) return;
    for (int i = 0; i < h->count; i++) {
        bars_hours_free(h->market[i].open);
        when_zone_free(h->market[i].zone);
    }
    free(h->market);
    free(h);
}

static const market *find(const hours *h, const char *symbol, int64_t span) {
    for (int i = 0; i < h->count; i++)
        if (h->market[i].span == span && strcmp(h->market[i].symbol, symbol) == 0) return &h->market[i];
    return NULL;
}

// Surveys the bars of the newest year, and of as many years more as a grid of 8 MB has room for.
static bars_hours *survey(const when_zone *z, int64_t span, const bar *bars, int64_t count, err *e) {
    enum { YEAR = 60, CELLS_MOST = 1 << 23 };
    int64_t first = 0, weeks = CELLS_MOST / (WHEN_WEEK / span + 1);
    if (weeks < YEAR) weeks = YEAR;
    while (bars[first].time < bars[count - 1].time - weeks * WHEN_WEEK) first++;
    rows r = {.name = "history", .count = (size_t)(count - first)};
    r.row = calloc(r.count, sizeof *r.row);
    NEED(r.row, "no memory for the hours of markets");
    for (size_t i = 0; i < r.count; i++) r.row[i].bar = bars[first + (int64_t)i];
    bars_hours *open = bars_hours_new(&r, 0, z, span, e);
    free(r.row);
    return open;
}

bool hours_learn(hours *h, const char *symbol, int64_t span, const char *tz, const bar *bars, int64_t count, err *e) {
    enum { LEAST = 4 * WHEN_WEEK };
    if (span > WHEN_DAY || !count || bars[count - 1].time - bars[0].time < LEAST || find(h, symbol, span)) return true;
    when_zone *zone = when_zone_new(tz && *tz ? tz : "UTC", e);
    bars_hours *open = zone ? survey(zone, span, bars, count, e) : NULL;
    if (!open) {
        when_zone_free(zone);
        return false;
    }
    market *more = realloc(h->market, ((size_t)h->count + 1) * sizeof *more);
    NEED(more, "no memory for the hours of markets");
    h->market = more;
    market *m = &h->market[h->count++];
    *m = (market){.span = span, .zone = zone, .open = open};
    snprintf(m->symbol, sizeof m->symbol, "%s", symbol);
    return true;
}

int64_t hours_missing(const void *arg, const char *symbol, int64_t span, int64_t from, int64_t to) {
    enum { STEPS_MOST = 12 };
    const market *m = find(arg, symbol, span);
    size_t hint = 0;
    if (m) return bars_hours_between(m->open, when_local(m->zone, from, &hint), when_local(m->zone, to, &hint));
    int64_t spans = when_spans_between(from, to, span);
    return spans > 1 && spans <= STEPS_MOST ? spans - 1 : 0;
}

// True where the market is known to have never had a bar between two moments.
static bool is_never_open(const hours *h, const char *symbol, int64_t span, int64_t from, int64_t to) {
    const market *m = find(h, symbol, span);
    size_t hint = 0;
    return m && !bars_hours_ever(m->open, when_local(m->zone, from, &hint), when_local(m->zone, to, &hint));
}

bool hours_ends_day(const hours *h, const char *symbol, int64_t span, const bar *b) {
    int64_t midnight = (when_day_of(b->time) + 1) * WHEN_DAY;
    return b->end >= midnight || is_never_open(h, symbol, span, b->time, midnight);
}

bool hours_none_since(const hours *h, const char *symbol, int64_t span, const bar *b, int64_t time) {
    return time < b->end + span || is_never_open(h, symbol, span, b->time, time);
}

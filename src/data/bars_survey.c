// What is odd in the bars that stay. Nothing is changed here.
#include "data/bars_rows.h"

#include <stdlib.h>

// Kinds of day that have hours of their own. The middle of the week is alike in every zone; Mondays and Fridays are
// not.
enum { DAY_KINDS = 5 };

static int day_kind(int64_t day) {
    static const int kinds[7] = {0, 1, 1, 1, 2, 3, 4};
    return kinds[when_weekday(day * WHEN_DAY)];
}

// A place on the grid of spans.
typedef struct {
    int64_t day, slot;
} place;

static place place_of(int64_t local, int64_t span) {
    int64_t day = local / WHEN_DAY - (local % WHEN_DAY < 0);
    return (place){day, (local - day * WHEN_DAY) / span};
}

// When the market is usually open.
typedef struct {
    int64_t slots;
    int64_t *open; // [DAY_KINDS][slots + 1]: usually open slots before each slot of such a day
} hours;

static int64_t *hours_of(const hours *h, int kind) {
    return h->open + kind * (h->slots + 1);
}

static bool hours_init(hours *h, const rows *r, size_t from, const when_zone *z, int64_t span, err *e) {
    h->slots = (WHEN_DAY + span - 1) / span;
    h->open = calloc((size_t)(DAY_KINDS * (h->slots + 1)), sizeof *h->open);
    if (!h->open) return err_run(e, "%s: no memory for its hours", r->name);
    size_t hint = 0;
    place first = {0}, last = {-1, -1};
    for (size_t i = from; i < r->count; i++) {
        place p = place_of(when_local(z, r->row[i].bar.time, &hint), span);
        if (i == from) first = p;
        if (i == from || p.day != last.day || p.slot != last.slot) hours_of(h, day_kind(p.day))[p.slot]++;
        last = p;
    }
    int64_t days[DAY_KINDS] = {0};
    for (int64_t day = first.day; day <= last.day; day++) days[day_kind(day)]++;
    for (int kind = 0; kind < DAY_KINDS; kind++) {
        int64_t *open = hours_of(h, kind), before = 0;
        for (int64_t slot = 0; slot <= h->slots; slot++) {
            bool usual = slot < h->slots && open[slot] && 4 * open[slot] >= 3 * days[kind];
            open[slot] = before;
            before += usual;
        }
    }
    return true;
}

// Usually open slots between two bars.
static int64_t hours_between(const hours *h, place a, place b) {
    if (b.day < a.day || (b.day == a.day && b.slot <= a.slot)) return 0;
    const int64_t *from = hours_of(h, day_kind(a.day)), *to = hours_of(h, day_kind(b.day));
    if (a.day == b.day) return to[b.slot] - from[a.slot + 1];
    int64_t sum = from[h->slots] - from[a.slot + 1] + to[b.slot];
    for (int64_t day = a.day + 1; day < b.day; day++) sum += hours_of(h, day_kind(day))[h->slots];
    return sum;
}

static void note_gap(rows *r, size_t i, int64_t missing) {
    bars_report *p = r->report;
    int64_t length = r->row[i].bar.time - r->row[i - 1].bar.time;
    bars_rows_tally(r, BARS_GAP, (int64_t)r->row[i].line);
    p->missing += missing;
    if (length <= p->longest) return;
    p->longest = length;
    p->longest_at = r->row[i - 1].bar.time;
}

static bool find_gaps(rows *r, const when_zone *z, int64_t span, err *e) {
    hours h = {0};
    // Coarse bars that were kept would all be gaps, and hide when the market is open.
    bool kept = r->report->coarse_rows && !r->report->tally[BARS_COARSE].count;
    size_t hint = 0, start = kept ? (size_t)r->report->coarse_rows : 0;
    if (span <= WHEN_DAY && !hours_init(&h, r, start, z, span, e)) return false;
    for (size_t i = start + 1; i < r->count; i++) {
        int64_t from = r->row[i - 1].bar.time, to = r->row[i].bar.time, missing = 0;
        if (to - from <= span && span % WHEN_MONTH) continue;
        int64_t a = when_local(z, from, &hint), b = when_local(z, to, &hint);
        if (span > WHEN_DAY)
            missing = when_spans_between(a, b, span) - 1;
        else
            missing = hours_between(&h, place_of(a, span), place_of(b, span));
        if (missing > 0) note_gap(r, i, missing);
    }
    free(h.open);
    return true;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bars_last judge_last(const rows *r, int64_t written) {
    enum { BEFORE = 50 };
    const bar *last = &r->row[r->count - 1].bar;
    if (written > 0 && last->end > written) return BARS_OPEN_WHEN_WRITTEN;
    if (r->count <= BEFORE) return BARS_FINISHED;
    double volume[BEFORE];
    for (size_t i = 0; i < BEFORE; i++) volume[i] = r->row[r->count - 1 - BEFORE + i].bar.volume;
    qsort(volume, BEFORE, sizeof *volume, by_size);
    return last->volume < volume[BEFORE / 2] / 10 ? BARS_THIN : BARS_FINISHED;
}

static void find_short_steps(rows *r, const when_zone *z, int64_t span) {
    size_t hint = 0;
    for (size_t i = 1; i < r->count; i++) {
        int64_t from = r->row[i - 1].bar.time, to = r->row[i].bar.time;
        if (to - from >= span) continue;
        // A day on which clocks go forward is shorter, but not on the clock; months and weeks follow the calendar.
        if (when_spans_between(when_local(z, from, &hint), when_local(z, to, &hint), span) < 1)
            bars_rows_tally(r, BARS_SHORT_STEP, (int64_t)r->row[i].line);
    }
}

bool bars_rows_survey(rows *r, const layout *l, const when_zone *z, int64_t span, int64_t written, err *e) {
    bars_report *p = r->report;
    size_t hint = 0;
    for (size_t i = 0; i < r->count; i++) {
        const bar *b = &r->row[i].bar;
        int64_t line = (int64_t)r->row[i].line;
        if (span <= WHEN_DAY && when_weekday(when_local(z, b->time, &hint)) >= 5)
            bars_rows_tally(r, BARS_WEEKEND, line);
        if (b->high == b->low) bars_rows_tally(r, BARS_FLAT, line);
        if (l->has[ROLE_VOLUME] && b->volume == 0) bars_rows_tally(r, BARS_NO_VOLUME, line);
        if (l->has[ROLE_SPREAD] && b->spread == 0) bars_rows_tally(r, BARS_NO_SPREAD, line);
        p->has_volume |= b->volume > 0;
        p->has_spread |= b->spread > 0;
    }
    p->first = r->row[0].bar.time;
    p->last = r->row[r->count - 1].bar.time;
    p->last_bar = judge_last(r, written);
    find_short_steps(r, z, span);
    return find_gaps(r, z, span, e);
}

// Odd things in the bars that stay. Nothing is changed here.
#include "data/bars_hours.h"
#include "data/median.h"

#include <stdlib.h>
#include <string.h>

static void note_gap(rows *r, size_t i, int64_t missing) {
    bars_report *p = r->report;
    int64_t length = r->row[i].bar.time - r->row[i - 1].bar.time;
    bars_rows_tally(r, BARS_GAP, (int64_t)r->row[i].line);
    p->missing += missing;
    if (length <= p->longest) return;
    p->longest = length;
    p->longest_at = r->row[i - 1].bar.time;
}

// The gaps from row `start` on, the first `before` rows of which are known already. Steps within a stretch of coarser
// bars that was kept would seem to be gaps.
static void find_gaps(rows *r, size_t start, size_t before, const bars_hours *h, const when_zone *z, int64_t span) {
    size_t hint = 0;
    for (size_t i = start + 1; i < r->count; i++) {
        int64_t from = r->row[i - 1].bar.time, to = r->row[i].bar.time, missing = 0;
        if ((to - from <= span && span % WHEN_MONTH) || r->row[i - 1].coarse) continue;
        int64_t a = when_local(z, from, &hint), b = when_local(z, to, &hint);
        missing = h ? bars_hours_between(h, a, b) : when_spans_between(a, b, span) - 1;
        if (missing > 0) note_gap(r, i, missing);
        if (missing > 0 && i == before) r->report->missing_first = missing;
    }
}

static bool check_full(rows *r, const bars_hours *h, unsigned force, err *e) {
    enum { FULL = 90 };
    double fullest = 100 * bars_hours_fullest(h);
    return fullest >= FULL ||
           bars_force_refuse(force, BARS_FORCE_THIN, &r->report->forced, e,
               "%s%s%s: no time of day has bars on %d %% of the days, the fullest on %.0f %%: rows are missing "
               "everywhere; export it whole",
               r->name, *r->symbol ? " " : "", r->symbol, FULL, fullest);
}

// Rows that go on from known bars have their gaps by the hours of both: their own hours would be learnt from their
// damage. They are thinned out, or not, by themselves.
static bool find_hours(rows *r, const joined_rows *j, const when_zone *z, int64_t span, const bars_options *o, err *e) {
    // Coarse bars that were kept would all be gaps, and hide when the market is open.
    bool kept = r->report->coarse_rows && !r->report->tally[BARS_COARSE].count;
    size_t start = kept ? (size_t)r->report->coarse_rows : 0, before = kept ? 0 : j->before;
    bars_hours *h = NULL, *own = NULL;
    rows all = kept ? *r : j->all;
    bool ok = true;
    if (span <= WHEN_DAY) ok = (h = bars_hours_new(&all, start, z, span, e)) && bars_hours_tell(h, r->report, e);
    if (ok) find_gaps(&all, before ? before - 1 : start, before, h, z, span);
    if (ok && h && before) ok = (own = bars_hours_new(r, 0, z, span, e));
    if (ok && h) ok = check_full(r, own ? own : h, o->force, e);
    bars_hours_free(h);
    bars_hours_free(own);
    return ok;
}

static bars_last judge_last(const rows *r, int64_t written) {
    enum { BEFORE = 50 };
    const bar *last = &r->row[r->count - 1].bar;
    if (written > 0 && last->end > written) return BARS_OPEN_WHEN_WRITTEN;
    if (r->count <= BEFORE) return BARS_FINISHED;
    double volume[BEFORE];
    for (size_t i = 0; i < BEFORE; i++) volume[i] = r->row[r->count - 1 - BEFORE + i].bar.volume;
    return last->volume < median(volume, BEFORE) / 10 ? BARS_THIN : BARS_FINISHED;
}

// Refuses bars that open after their file was written. One within a span may be an open bar that is stamped at its
// close.
static bool check_future(rows *r, int64_t span, const bars_options *o, err *e) {
    size_t first = r->count;
    char by[32];
    while (o->written > 0 && first > 0 && r->row[first - 1].bar.time > o->written) first--;
    if (first == r->count) return true;
    size_t count = r->count - first;
    int64_t ahead = r->row[r->count - 1].bar.time - o->written;
    if (count == 1 && ahead <= span) return true;
    return bars_force_refuse(o->force, BARS_FORCE_FUTURE, &r->report->forced, e,
        "%s:%lld: %zu bar%s after the file was written, up to %s (is --tz missing?); name the file's clock with --tz "
        "or "
        "data.tz, or correct the stamp",
        r->name, (long long)r->row[first].line, count, count == 1 ? " opens" : "s open",
        when_span_text(by, sizeof by, ahead));
}

// True where bar `i` follows the one before it sooner than a span.
static bool is_short_step(const rows *r, size_t i, const when_zone *z, int64_t span, size_t *hint) {
    int64_t from = r->row[i - 1].bar.time, to = r->row[i].bar.time;
    if (to - from >= span) return false;
    // A day on which clocks go forward is shorter, but not on the clock; months and weeks follow the calendar.
    return when_spans_between(when_local(z, from, hint), when_local(z, to, hint), span) < 1;
}

bool bars_rows_survey(
    rows *r, const joined_rows *j, const layout *l, const when_zone *z, int64_t span, const bars_options *o, err *e) {
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
        if (i && is_short_step(r, i, z, span, &hint)) bars_rows_tally(r, BARS_SHORT_STEP, line);
        p->has_volume |= b->volume > 0;
        p->has_spread |= b->spread > 0;
    }
    p->first = r->row[0].bar.time;
    p->last = r->row[r->count - 1].bar.time;
    p->last_bar = judge_last(&j->all, o->written);
    return check_future(r, span, o, e) && find_hours(r, j, z, span, o, e);
}

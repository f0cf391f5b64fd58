// The frame: the usual step between bars, and where it changes.
//
// Long MetaTrader histories begin with coarser bars. The stretch of the finest frame runs to the end of the file and
// begins where the sum of scores to the end is greatest: a step of the finest span counts FINE, any other step -1. So a
// stretch belongs to the fine bars where more than one step in FINE + 1 is fine, which thin markets pass and coarser
// bars with a stray fine step do not.
//
// Behind that, rows of a coarser frame are wrong bars too: each holds the future of the fine ones that it stands for. A
// stretch of them is a run of at least STRETCH_LEAST steps, none of them fine, nearly all of them multiples of the one
// that is most common. The steps of a thin market are multiples of the finest span instead.
#include "data/bars_rows.h"

#include <stdlib.h>
#include <string.h>

enum { FINE = 8, COARSE_LEAST = 16, TAIL_LEAST = 64, STRETCH_LEAST = 24 };

// How often each step occurs, by hashing; few differ, so little of the table is ever touched.
typedef struct {
    int64_t step;
    size_t count; // 0: free
} bin;

// The most common value; of equally common ones the smallest.
static bool most_common(const int64_t *step, size_t n, int64_t *value, const char *name, err *e) {
    size_t room = 16;
    while (room < 2 * n) room *= 2;
    bin *bins = calloc(room, sizeof *bins);
    if (!bins) return err_run(e, "%s: no memory to count %zu steps", name, n);
    bin best = {0};
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)(((uint64_t)step[i] * 0x9E3779B97F4A7C15u) >> 20) & (room - 1);
        while (bins[at].count && bins[at].step != step[i]) at = (at + 1) & (room - 1);
        bins[at].step = step[i];
        bins[at].count++;
        if (bins[at].count > best.count || (bins[at].count == best.count && step[i] < best.step)) best = bins[at];
    }
    free(bins);
    *value = best.step;
    return true;
}

static int64_t *steps_new(const rows *r, err *e) {
    size_t n = r->count - 1;
    int64_t *step = calloc(n, sizeof *step);
    if (!step) err_run(e, "%s: no memory for %zu steps", r->name, n);
    for (size_t i = 0; step && i < n; i++) step[i] = when_step_span(r->row[i + 1].bar.time - r->row[i].bar.time);
    return step;
}

// Where the fine stretch begins.
static size_t fine_start(const int64_t *step, size_t n, int64_t fine) {
    int64_t score = 0, best = 0;
    size_t start = 0;
    for (size_t i = n; i-- > 0;) {
        score += step[i] == fine ? FINE : -1;
        if (score <= best) continue;
        best = score;
        start = i;
    }
    return start;
}

// True where row `at` encloses all bars of the coarse span that it opens: such a row is the last coarse one, although
// the next row follows at the fine span, and as a fine bar it would show the future.
static bool straddles(const rows *r, size_t at, int64_t coarse) {
    const bar *b = &r->row[at].bar;
    size_t i = at + 1;
    for (; i < r->count && r->row[i].bar.time - b->time < coarse; i++)
        if (r->row[i].bar.high > b->high || r->row[i].bar.low < b->low) return false;
    return i - at > 2;
}

static void drop(rows *r, size_t from, size_t n, bars_finding f) {
    for (size_t i = from; i < from + n; i++) bars_rows_tally(r, f, (int64_t)r->row[i].line);
    memmove(r->row + from, r->row + from + n, (r->count - from - n) * sizeof *r->row);
    r->count -= n;
}

// Notes the coarse stretch before `start`, where there is one, and drops it where told; `*dropped` counts rows.
static bool cut(rows *r, const int64_t *step, size_t start, int64_t fine, bool keep, size_t *dropped, err *e) {
    int64_t coarse;
    *dropped = 0;
    if (start < COARSE_LEAST) return true;
    if (!most_common(step, start, &coarse, r->name, e)) return false;
    if (coarse < 2 * fine) return true;
    r->report->coarse_rows = (int64_t)start;
    r->report->coarse_span = coarse;
    r->report->coarse_until = r->row[start - 1].bar.time;
    if (keep) return true;
    bool one_more = r->count - start > 2 && straddles(r, start, coarse);
    if (one_more) drop(r, start, 1, BARS_STRADDLING);
    drop(r, 0, start, BARS_COARSE);
    *dropped = start + one_more;
    return true;
}

// True where the steps from..to-1 are those of coarser bars; `*coarse` is their span.
static bool is_coarse(
    const rows *r, const int64_t *step, size_t from, size_t to, int64_t fine, int64_t *coarse, err *e) {
    size_t multiples = 0;
    if (!most_common(step + from, to - from, coarse, r->name, e)) return false;
    for (size_t i = from; i < to; i++) multiples += step[i] % *coarse == 0;
    return *coarse >= 2 * fine && 10 * multiples >= 9 * (to - from);
}

// Marks the coarser bars among the steps from..to-1, of `n` in all, and notes them in the report as far as it has room.
// A row is coarse where the step after it is, and the last one of the file where the step before it is. Rows to be left
// out are counted, with the one after them where it still holds the range of a coarse bar.
static void mark_stretch(rows *r, const int64_t *step, size_t from, size_t to, size_t n, int64_t coarse, bool keep) {
    size_t end = to;
    while (step[from] != coarse) from++;
    while (step[end - 1] < coarse) end--;
    end += end == n;
    if (r->report->stretches < BARS_STRETCHES_MOST)
        r->report->stretch[r->report->stretches] = (bars_stretch){.rows = (int64_t)(end - from),
            .span = coarse,
            .first = r->row[from].bar.time,
            .last = r->row[end - 1].bar.time,
            .line = (int64_t)r->row[from].line};
    r->report->stretches++;
    for (size_t i = from; i < end; i++) {
        r->row[i].coarse = 1;
        if (!keep) bars_rows_tally(r, BARS_COARSE, (int64_t)r->row[i].line);
    }
    if (keep || r->count <= end + 2 || !straddles(r, end, coarse)) return;
    r->row[end].coarse = 1;
    bars_rows_tally(r, BARS_STRADDLING, (int64_t)r->row[end].line);
}

// Finds stretches of coarser bars from row `start` on, among `n` steps, and drops their rows where told. Where no step
// is fine, the others are no coarser than what the file has.
static bool find_stretches(rows *r, const int64_t *step, size_t start, size_t n, int64_t fine, bool keep, err *e) {
    err why = {0};
    size_t kept = 0, fine_steps = 0;
    for (size_t i = start; i < n; i++) fine_steps += step[i] == fine;
    for (size_t i = start, to; i < n && fine_steps; i = to + 1) {
        int64_t coarse;
        for (to = i; to < n && step[to] >= 2 * fine;) to++;
        if (to - i < STRETCH_LEAST || !is_coarse(r, step, i, to, fine, &coarse, &why)) continue;
        mark_stretch(r, step, i, to, n, coarse, keep);
    }
    if (why.kind) return err_run(e, "%s", why.text);
    for (size_t i = 0; i < r->count && !keep; i++)
        if (!r->row[i].coarse) r->row[kept++] = r->row[i];
    if (!keep) r->count = kept;
    return true;
}

// The span of a single row: the one known span whose grid it is on and whose bars it fits best. Clocks differ from UTC
// by quarters of an hour, so a grid is no coarser.
static bool frame_of_one(const rows *r, const bars_options *o, int64_t *span, err *e) {
    enum { QUARTER = 900 };
    const bar *b = &r->row[0].bar;
    bars_fit best = BARS_FIT_NOT;
    int fits = 0;
    *span = o->spans[0];
    if (o->span_count == 1) return true;
    for (int i = 0; i < o->span_count; i++) {
        int64_t grid = o->spans[i] % QUARTER ? 1 : QUARTER;
        if (QUARTER % o->spans[i] == 0) grid = o->spans[i];
        if (b->time % grid) continue;
        bars_fit fit = o->fits ? o->fits(o->arg, r->symbol, o->spans[i], b) : BARS_FIT_NEWER;
        if (fit < best) continue;
        fits = fit > best ? 1 : fits + 1;
        best = fit;
        *span = o->spans[i];
    }
    if (fits <= 1) return true;
    if (o->unclear) *o->unclear = true;
    return err_input(e, "%s: one bar does not show which span it has; give the bar before it too", r->name);
}

// True where all steps are whole numbers of a span, but for an hour by which a clock changed over the days. Calendar
// months are not of one length.
static bool steps_fit(const int64_t *step, size_t n, int64_t span) {
    for (size_t i = 0; i < n; i++) {
        int64_t off = step[i] % span;
        bool changed = span > WHEN_HOUR && step[i] > WHEN_DAY && (off == WHEN_HOUR || off == span - WHEN_HOUR);
        if (step[i] + WHEN_HOUR < span || (off && !changed && span < WHEN_MONTH)) return false;
    }
    return true;
}

// Few steps show holes as well as spans: where the one that was found is none of the known ones, the coarsest that fits
// is taken.
static void prefer_known(const bars_options *o, const int64_t *step, size_t n, int64_t *span) {
    enum { SURE = 3 };
    int64_t found = 0;
    size_t times = 0;
    for (size_t i = 0; i < n; i++) times += step[i] == *span;
    for (int i = 0; i < o->span_count; i++) {
        if (o->spans[i] == *span) return;
        if (times < SURE && o->spans[i] > found && steps_fit(step, n, o->spans[i])) found = o->spans[i];
    }
    if (found) *span = found;
}

bool bars_rows_frame(rows *r, const bars_options *o, int64_t *span, err *e) {
    bool keep_coarse = o->keep_coarse;
    if (r->count == 1 && o->span_count) return frame_of_one(r, o, span, e);
    CHECK(r->count >= 2, "the frame of %zu rows", r->count);
    size_t n = r->count - 1, tail = n / 4 > TAIL_LEAST ? n / 4 : n < TAIL_LEAST ? n : TAIL_LEAST, dropped;
    int64_t whole = 0, late = 0, *step = steps_new(r, e);
    bool ok = step && most_common(step, n, &whole, r->name, e) && most_common(step + n - tail, tail, &late, r->name, e);
    if (ok) {
        *span = whole < late ? whole : late;
        prefer_known(o, step, n, span);
        ok = cut(r, step, fine_start(step, n, *span), *span, keep_coarse, &dropped, e);
    }
    if (ok && dropped) ok = most_common(step + dropped, n - dropped, span, r->name, e);
    size_t start = ok && keep_coarse ? (size_t)r->report->coarse_rows : 0;
    ok = ok && find_stretches(r, step + dropped, start, n - dropped, *span, keep_coarse, e);
    free(step);
    return ok;
}

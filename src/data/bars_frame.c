// The frame: the usual step between bars, and where it changes.
//
// Long MetaTrader histories begin with coarser bars. The stretch of the finest frame runs to the end of the file and
// begins where the sum of scores to the end is greatest: a step of the finest span counts FINE, any other step -1. So a
// stretch belongs to the fine bars where more than one step in FINE + 1 is fine, which thin markets pass and coarser
// bars with a stray fine step do not.
#include "data/bars_rows.h"

#include <stdlib.h>
#include <string.h>

enum { FINE = 8, COARSE_LEAST = 16, TAIL_LEAST = 64 };

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

// Whether row `at` encloses all bars of the coarse span that it opens: such a row is the last coarse one, although the
// next row follows at the fine span, and as a fine bar it would show the future.
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

bool bars_rows_frame(rows *r, bool keep_coarse, int64_t *span, err *e) {
    CHECK(r->count >= 2, "the frame of %zu rows", r->count);
    size_t n = r->count - 1, tail = n / 4 > TAIL_LEAST ? n / 4 : n < TAIL_LEAST ? n : TAIL_LEAST, dropped;
    int64_t whole = 0, late = 0, *step = steps_new(r, e);
    bool ok = step && most_common(step, n, &whole, r->name, e) && most_common(step + n - tail, tail, &late, r->name, e);
    if (ok) {
        *span = whole < late ? whole : late;
        ok = cut(r, step, fine_start(step, n, *span), *span, keep_coarse, &dropped, e);
    }
    if (ok && dropped) ok = most_common(step + dropped, n - dropped, span, r->name, e);
    free(step);
    return ok;
}

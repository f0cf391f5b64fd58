// Rows into time order: turned round, moved to UTC, sorted where needed, one row a stamp.
#include "data/bars_rows.h"

#include <stdlib.h>

// Most files are in order or exactly the other way round; the majority of steps tells which.
static bool runs_backwards(const rows *r) {
    size_t up = 0, down = 0;
    for (size_t i = 1; i < r->count; i++) {
        up += r->row[i].bar.time > r->row[i - 1].bar.time;
        down += r->row[i].bar.time < r->row[i - 1].bar.time;
    }
    return down > up;
}

static void turn(rows *r) {
    for (size_t i = 0; i < r->count / 2; i++) {
        row *a = &r->row[i], *b = &r->row[r->count - 1 - i], t = *a;
        *a = *b;
        *b = t;
    }
}

static void to_utc(rows *r, const when_zone *z) {
    size_t hint = 0;
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < r->count; i++) {
        row *w = &r->row[i];
        when_kind kind = WHEN_PLAIN;
        if (!w->utc) w->bar.time = when_utc(z, w->bar.time, before, &hint, &kind);
        if (kind == WHEN_AMBIGUOUS) bars_rows_tally(r, BARS_REPEATED, (int64_t)w->line);
        if (kind == WHEN_SKIPPED) bars_rows_tally(r, BARS_SKIPPED, (int64_t)w->line);
        before = w->bar.time;
    }
}

static int compare(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->bar.time != y->bar.time) return x->bar.time < y->bar.time ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void sort(rows *r) {
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < r->count; i++) {
        int64_t t = r->row[i].bar.time;
        if (t < latest) bars_rows_tally(r, BARS_UNSORTED, (int64_t)r->row[i].line);
        if (t > latest) latest = t;
    }
    if (r->report->tally[BARS_UNSORTED].count) qsort(r->row, r->count, sizeof *r->row, compare);
}

static bool same(const bar *a, const bar *b) {
    return a->open == b->open && a->high == b->high && a->low == b->low && a->close == b->close &&
           a->volume == b->volume && a->spread == b->spread;
}

// Keeps the row of the greatest line of each stamp; a file that was turned round has its later lines first.
static void unite_stamps(rows *r) {
    size_t kept = 0;
    for (size_t i = 0, next; i < r->count; i = next) {
        size_t last = i;
        for (next = i + 1; next < r->count && r->row[next].bar.time == r->row[i].bar.time; next++)
            if (r->row[next].line > r->row[last].line) last = next;
        for (size_t k = i; k < next; k++) {
            if (k == last) continue;
            bool equal = same(&r->row[k].bar, &r->row[last].bar);
            bars_rows_tally(r, equal ? BARS_DUPLICATE : BARS_CONFLICT, (int64_t)r->row[k].line);
        }
        r->row[kept++] = r->row[last];
    }
    r->count = kept;
}

void bars_rows_order(rows *r, const when_zone *z, bool unite) {
    r->report->turned = runs_backwards(r);
    if (r->report->turned) turn(r);
    to_utc(r, z);
    sort(r);
    if (unite) unite_stamps(r);
}

#include "data/frame.h"

#include "data/when.h"

#include <stdlib.h>
#include <string.h>

static int64_t unit_of(char c) {
    static const char letters[] = "smhdwSMHDW";
    static const int64_t seconds[] = {1, 60, WHEN_HOUR, WHEN_DAY, WHEN_WEEK};
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? seconds[(at - letters) % 5] : 0;
}

static bool is_month(const char *text, size_t n) {
    static const char *const months[] = {"1mo", "MN1", "MN", "mn1"};
    for (size_t i = 0; i < sizeof months / sizeof *months; i++)
        if (strlen(months[i]) == n && memcmp(months[i], text, n) == 0) return true;
    return false;
}

bool frame_read(const char *text, size_t n, int64_t *span) {
    int64_t value = 0;
    *span = WHEN_MONTH;
    if (is_month(text, n)) return true;
    if (n < 2 || n > 7 || (n == 2 && memcmp(text, "1M", 2) == 0)) return false;
    bool before = unit_of(text[0]) > 0; // "M5"
    int64_t unit = unit_of(before ? text[0] : text[n - 1]);
    for (size_t i = before; i < n - !before; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + text[i] - '0';
    }
    *span = value * unit;
    return (*span >= 1 && *span <= WHEN_DAY) || *span == WHEN_WEEK;
}

// The open of the coarse bar that holds a moment. 1970 began on a Thursday, 3 days into a week.
static int64_t opening(int64_t time, int64_t span) {
    when_parts p = when_split(time);
    if (span == WHEN_MONTH) return when_day(p.year, p.month, 1) * WHEN_DAY;
    int64_t moved = span == WHEN_WEEK ? time + 3 * WHEN_DAY : time, off = moved % span;
    return time - (off < 0 ? off + span : off);
}

static int64_t closing(int64_t open, int64_t span) {
    when_parts p = when_split(open);
    if (span != WHEN_MONTH) return open + span;
    return when_day(p.year + p.month / 12, p.month % 12 + 1, 1) * WHEN_DAY;
}

// Takes a fine bar into the coarse one; `spreads` counts those that are known.
static void add(bar *to, const bar *from, int64_t *spreads) {
    if (from->high > to->high) to->high = from->high;
    if (from->low < to->low) to->low = from->low;
    to->close = from->close;
    to->volume += from->volume;
    if (from->spread > 0) to->spread += (from->spread - to->spread) / (double)++*spreads;
}

void frame_maker_begin(frame_maker *m, int64_t span) {
    *m = (frame_maker){.span = span};
}

static void open_bar(frame_maker *m, const bar *fine, bool first) {
    m->now = *fine;
    m->now.time = opening(fine->time, m->span);
    m->now.end = closing(m->now.time, m->span);
    m->now.volume = m->now.spread = 0;
    m->spreads = 0;
    m->whole = !first || m->follows || m->now.time >= fine->time;
    m->begun = true;
    m->given = false;
}

static int give(frame_maker *m, bar *to) {
    m->given = true;
    if (m->whole) *to = m->now;
    return m->whole;
}

int frame_maker_push(frame_maker *m, const bar *fine, bar made[FRAME_MAKER_MOST]) {
    int n = 0;
    bool next = !m->begun || fine->time >= m->now.end;
    if (next && m->begun && !m->given) n += give(m, &made[n]);
    if (next) open_bar(m, fine, !m->begun);
    add(&m->now, fine, &m->spreads);
    if (!m->given && m->now.end <= fine->end) n += give(m, &made[n]);
    return n;
}

bool frame_divides(int64_t fine, int64_t to) {
    if (to <= fine) return false;
    if (to == WHEN_MONTH || to == WHEN_WEEK) return WHEN_DAY % fine == 0;
    return to % fine == 0 && WHEN_DAY % to == 0;
}

bool frame_make(const frame_source *from, int64_t to, const char *name, bar **made, int64_t *n, err *e) {
    char a[32], b[32];
    int64_t count = from->count;
    *made = NULL;
    *n = 0;
    when_span_text(a, sizeof a, from->span);
    when_span_text(b, sizeof b, to);
    if (!frame_divides(from->span, to))
        return err_input(
            e, "%s: bars of %s cannot be made of bars of %s; use a multiple that divides a day", name, b, a);
    if (!count && from->follows) return true;
    CHECK(count > 0, "a frame of no bars");
    bar *all = malloc((size_t)count * sizeof *all);
    if (!all) return err_run(e, "%s: no memory for bars of %s", name, b);
    frame_maker m;
    frame_maker_begin(&m, to);
    m.follows = from->follows;
    for (int64_t i = 0; i < count; i++) *n += frame_maker_push(&m, &from->bar[i], all + *n);
    if (*n) {
        bar *less = realloc(all, (size_t)*n * sizeof *all);
        *made = less ? less : all;
        return true;
    }
    free(all);
    return from->follows || err_input(e, "%s: holds no whole bar of %s; leave that frame out", name, b);
}

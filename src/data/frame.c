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

static int64_t gather(const bar *bars, int64_t count, int64_t to, bar *made) {
    int64_t n = 0, spreads = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!n || bars[i].time >= made[n - 1].end) {
            made[n] = bars[i];
            made[n].time = opening(bars[i].time, to);
            made[n].end = closing(made[n].time, to);
            made[n].volume = made[n].spread = 0;
            spreads = 0;
            n++;
        }
        add(&made[n - 1], &bars[i], &spreads);
    }
    return n;
}

static bool divides(int64_t fine, int64_t to) {
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
    if (!divides(from->span, to))
        return err_input(
            e, "%s: bars of %s cannot be made of bars of %s; use a multiple that divides a day", name, b, a);
    if (!count && from->follows) return true;
    CHECK(count > 0, "a frame of no bars");
    bar *all = malloc((size_t)count * sizeof *all);
    if (!all) return err_run(e, "%s: no memory for bars of %s", name, b);
    *n = gather(from->bar, count, to, all);
    if (all[*n - 1].end > from->bar[count - 1].end) --*n;
    if (*n && !from->follows && all[0].time < from->bar[0].time) memmove(all, all + 1, (size_t)-- * n * sizeof *all);
    if (*n) {
        bar *less = realloc(all, (size_t)*n * sizeof *all);
        *made = less ? less : all;
        return true;
    }
    free(all);
    return from->follows || err_input(e, "%s: holds no whole bar of %s; leave that frame out", name, b);
}

#include "data/frame.h"

#include "data/when.h"

#include <stdlib.h>
#include <string.h>

static int64_t unit_of(char c) {
    static const char letters[] = "smhdSMHD";
    static const int64_t seconds[] = {1, 60, 3600, WHEN_DAY};
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? seconds[(at - letters) % 4] : 0;
}

bool frame_read(const char *text, size_t n, int64_t *span) {
    int64_t value = 0;
    if (n < 2 || n > 7) return false;
    bool before = unit_of(text[0]) > 0; // "M5"
    int64_t unit = unit_of(before ? text[0] : text[n - 1]);
    for (size_t i = before; i < n - !before; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + text[i] - '0';
    }
    *span = value * unit;
    return *span >= 1 && *span <= WHEN_DAY;
}

static int64_t opening(int64_t time, int64_t span) {
    int64_t off = time % span;
    return time - (off < 0 ? off + span : off);
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
        int64_t open = opening(bars[i].time, to);
        if (!n || made[n - 1].time != open) {
            made[n] = bars[i];
            made[n].time = open;
            made[n].end = open + to;
            made[n].volume = made[n].spread = 0;
            spreads = 0;
            n++;
        }
        add(&made[n - 1], &bars[i], &spreads);
    }
    return n;
}

bool frame_make(
    const bar *bars, int64_t count, int64_t span, int64_t to, const char *name, bar **made, int64_t *n, err *e) {
    char a[32], b[32];
    *made = NULL;
    when_span_text(a, sizeof a, span);
    when_span_text(b, sizeof b, to);
    if (to <= span || to % span || WHEN_DAY % to)
        return err_input(
            e, "%s: bars of %s cannot be made of bars of %s; use a multiple that divides a day", name, b, a);
    CHECK(count > 0, "a frame of no bars");
    bar *all = malloc((size_t)count * sizeof *all);
    if (!all) return err_run(e, "%s: no memory for bars of %s", name, b);
    *n = gather(bars, count, to, all);
    if (all[*n - 1].end > bars[count - 1].end) --*n;
    if (*n && all[0].time < bars[0].time) memmove(all, all + 1, (size_t)-- * n * sizeof *all);
    if (*n) {
        bar *less = realloc(all, (size_t)*n * sizeof *all);
        *made = less ? less : all;
        return true;
    }
    free(all);
    return err_input(e, "%s: holds no whole bar of %s; leave that frame out", name, b);
}

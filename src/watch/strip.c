#include "watch/strip.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>

void strip_done(strip *s) {
    free(s->cell);
    *s = (strip){0};
}

size_t strip_bytes(const strip *s) {
    return (size_t)s->room * sizeof *s->cell;
}

static strip_cell join(strip_cell a, strip_cell b) {
    return (strip_cell){b.low.y < a.low.y ? b.low : a.low, b.high.y > a.high.y ? b.high : a.high, a.key};
}

static void halve(strip *s) {
    for (int i = 0; i < s->cells / 2; i++) s->cell[i] = join(s->cell[2 * i], s->cell[2 * i + 1]);
    s->cells /= 2;
    s->each *= 2;
}

static void make_room(strip *s) {
    if (s->each == 0) s->each = 1;
    if (s->cells == STRIP_CELLS) halve(s);
    if (s->cells < s->room) return;
    s->room = s->room ? 2 * s->room : 64;
    s->cell = realloc(s->cell, (size_t)s->room * sizeof *s->cell);
    NEED(s->cell, "out of memory for a curve");
}

void strip_add(strip *s, int64_t key, double x, double y) {
    s->last_key = key;
    if (!isfinite(x) || !isfinite(y)) {
        s->missing++;
        return;
    }
    strip_cell one = {{x, y}, {x, y}, key};
    if (s->open == 0) {
        make_room(s);
        s->cell[s->cells++] = one;
    } else {
        s->cell[s->cells - 1] = join(s->cell[s->cells - 1], one);
    }
    s->open = (s->open + 1) % s->each;
    s->last = one.low;
    s->count++;
}

// Drawing

static double begin_of(const strip_cell *c) {
    return fmin(c->low.x, c->high.x);
}

static double end_of(const strip_cell *c) {
    return fmax(c->low.x, c->high.x);
}

// The first cell that ends behind x.
static int cell_behind(const strip *s, double x) {
    int low = 0, high = s->cells;
    while (low < high) {
        int middle = (low + high) / 2;
        if (end_of(&s->cell[middle]) < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Cells of a window: first up to, but not including, last.
static void window(const strip *s, double from, double to, int *first, int *last) {
    *first = *last = cell_behind(s, from);
    while (*last < s->cells && begin_of(&s->cell[*last]) <= to) ++*last;
}

static int put(const strip_cell *c, strip_point *out) {
    bool low_first = c->low.x <= c->high.x;
    out[0] = low_first ? c->low : c->high;
    out[1] = low_first ? c->high : c->low;
    return out[0].x == out[1].x && out[0].y == out[1].y ? 1 : 2;
}

int strip_draw(const strip *s, double from, double to, int points, strip_point *out) {
    int first, last, n = 0;
    window(s, from, to, &first, &last);
    CHECK(points > 0, "a drawing of no points");
    if (first > 0) n += put(&s->cell[first - 1], out + n);
    int count = last - first, stretches = count < points ? count : points;
    for (int k = 0; k < stretches; k++) {
        int a = first + (int)((int64_t)count * k / stretches), b = first + (int)((int64_t)count * (k + 1) / stretches);
        strip_cell all = s->cell[a];
        for (int i = a + 1; i < b; i++) all = join(all, s->cell[i]);
        n += put(&all, out + n);
    }
    if (last < s->cells) n += put(&s->cell[last], out + n);
    return n;
}

bool strip_is_coarse(const strip *s, double from, double to, int points, int64_t *first, int64_t *last) {
    int a, b;
    if (s->each <= 1) return false;
    window(s, from, to, &a, &b);
    *first = s->cell[a > 0 ? a - 1 : 0].key;
    *last = b + 1 < s->cells ? s->cell[b + 1].key : s->last_key;
    return b > a && b - a < points / 2;
}

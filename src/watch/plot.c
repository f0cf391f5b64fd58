#include "watch/plot.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 9, DOTS_ACROSS = 2, DOTS_DOWN = 4, BRAILLE = 0x2800 };

typedef struct {
    double x0, x1, y0, y1;
    bool logarithm;
} range;

// Dots of a plot, each with the curve that has it last: 0: none, 1 and 2.
typedef struct {
    int across, down;
    unsigned char *dot;
} canvas;

static double level(const range *r, double v) {
    return r->logarithm ? log10(v) : v;
}

static double first_shown(const plot *p) {
    double first = INFINITY, last = -INFINITY;
    for (int k = 0; k < 2; k++) {
        const trace *t = p->line[k];
        if (!t || !t->count) continue;
        first = fmin(first, t->x[0]);
        last = fmax(last, t->x[t->count - 1]);
    }
    return last - (last - first) / (double)(1 << p->zoom);
}

// False where there is nothing to show.
static bool find_range(const plot *p, range *r) {
    double least = INFINITY, most = -INFINITY;
    *r = (range){first_shown(p), -INFINITY, INFINITY, -INFINITY, false};
    for (int k = 0; k < 2; k++) {
        const trace *t = p->line[k];
        for (int i = 0; t && i < t->count; i++) {
            if (t->x[i] < r->x0) continue;
            r->x1 = fmax(r->x1, t->x[i]);
            least = fmin(least, t->low[i]);
            most = fmax(most, t->high[i]);
        }
    }
    if (!(least <= most)) return false;
    r->logarithm = p->logarithm && least > 0;
    r->y0 = level(r, least);
    r->y1 = level(r, most);
    if (r->y0 == r->y1) {
        double pad = r->y0 != 0 ? fabs(r->y0) * 0.05 : 1;
        r->y0 -= pad;
        r->y1 += pad;
    }
    if (r->x0 == r->x1) r->x1 = r->x0 + 1;
    return true;
}

static int down_at(const canvas *c, const range *r, double v) {
    double share = (level(r, v) - r->y0) / (r->y1 - r->y0);
    return (int)lround((1 - fmin(fmax(share, 0), 1)) * (c->down - 1));
}

static int across_at(const canvas *c, const range *r, double x) {
    double share = (x - r->x0) / (r->x1 - r->x0);
    return (int)lround(fmin(fmax(share, 0), 1) * (c->across - 1));
}

static void set(canvas *c, int across, int from, int to, int curve) {
    for (int y = from < to ? from : to; y <= (from < to ? to : from); y++)
        c->dot[y * c->across + across] = (unsigned char)curve;
}

// The points of a curve with what is between them: the range of each point upright, means joined.
static void draw_curve(canvas *c, const range *r, const trace *t, int curve) {
    int x = -1, y = 0;
    for (int i = 0; i < t->count; i++) {
        if (t->x[i] < r->x0) continue;
        int nx = across_at(c, r, t->x[i]), ny = down_at(c, r, t->mean[i]);
        set(c, nx, down_at(c, r, t->low[i]), down_at(c, r, t->high[i]), curve);
        for (int k = x + 1, from = y; x >= 0 && k <= nx; k++) {
            int to = y + (int)lround((double)(ny - y) * (k - x) / (nx - x));
            set(c, k, from, to, curve);
            from = to;
        }
        if (x == nx) set(c, nx, y, ny, curve);
        x = nx;
        y = ny;
    }
}

// Canvas to cells

static void put_braille(cells *g, area a, const canvas *c, int row, int column) {
    static const unsigned char bit[DOTS_DOWN][DOTS_ACROSS] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    uint32_t rune = 0;
    int curve = 0;
    for (int y = 0; y < DOTS_DOWN; y++)
        for (int x = 0; x < DOTS_ACROSS; x++) {
            int k = c->dot[(row * DOTS_DOWN + y) * c->across + column * DOTS_ACROSS + x];
            if (k) rune |= bit[y][x];
            if (k && (!curve || k < curve)) curve = k;
        }
    if (rune) cells_put(g, a.row + row, a.column + column, curve == 2 ? STYLE_SECOND : STYLE_FIRST, BRAILLE + rune);
}

static void put_star(cells *g, area a, const canvas *c, int row, int column) {
    int curve = c->dot[row * c->across + column];
    if (curve)
        cells_put(g, a.row + row, a.column + column, curve == 2 ? STYLE_SECOND : STYLE_FIRST, curve == 2 ? 'o' : '*');
}

static void draw_canvas(cells *g, area a, const plot *p, const range *r) {
    canvas c = {
        .across = g->ascii ? a.columns : a.columns * DOTS_ACROSS, .down = g->ascii ? a.rows : a.rows * DOTS_DOWN};
    c.dot = calloc((size_t)c.across * (size_t)c.down, 1);
    NEED(c.dot, "out of memory for a curve");
    for (int k = 1; k >= 0; k--)
        if (p->line[k]) draw_curve(&c, r, p->line[k], k + 1);
    for (int row = 0; row < a.rows; row++)
        for (int column = 0; column < a.columns; column++) (g->ascii ? put_star : put_braille)(g, a, &c, row, column);
    free(c.dot);
}

// Labels

static void put_label(cells *g, area a, int row, const range *r, double at) {
    char text[32];
    double v = r->y0 + (r->y1 - r->y0) * at;
    cells_number(text, r->logarithm ? pow(10, v) : v, 4, LABELS - 1);
    int n = (int)strlen(text);
    cells_text(g, a.row + row, a.column + (n < LABELS - 1 ? LABELS - 1 - n : 0), LABELS - 1, STYLE_DIM, text);
}

static void put_range(cells *g, area a, const plot *p, const range *r) {
    char first[32], last[48];
    int row = a.row + a.rows - 1, end = a.column + a.columns;
    snprintf(first, sizeof first, "%.6g", r->x0);
    snprintf(last, sizeof last, "%s %.6g", p->x, r->x1);
    int n = cells_text(g, row, a.column + LABELS, a.columns - LABELS, STYLE_DIM, first), width = (int)strlen(last);
    if (n + width + 2 < a.columns - LABELS) cells_text(g, row, end - width, width, STYLE_DIM, last);
}

void plot_draw(cells *g, area a, const plot *p) {
    range r;
    if (a.rows < 3 || a.columns < LABELS + 8) return;
    if (!find_range(p, &r)) {
        cells_text(g, a.row + a.rows / 2, a.column + LABELS, a.columns - LABELS, STYLE_DIM, "nothing to draw yet");
        return;
    }
    area inner = {a.row, a.column + LABELS, a.rows - 1, a.columns - LABELS};
    draw_canvas(g, inner, p, &r);
    put_label(g, a, 0, &r, 1);
    if (inner.rows > 4) put_label(g, a, inner.rows / 2, &r, 1 - (double)(inner.rows / 2) / (inner.rows - 1));
    put_label(g, a, inner.rows - 1, &r, 0);
    put_range(g, a, p, &r);
}

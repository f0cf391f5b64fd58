#include "watch/chart.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 62, RIGHT = 16, ABOVE = 26, BELOW = 44, LETTER = 7, DENSE = 300 };

static const char *const strokes[CHART_LINES] = {"line la", "line lb", "line lc", "line ld"};
static const char *const thin_strokes[CHART_LINES] = {"line thin la", "line thin lb", "line thin lc", "line thin ld"};
static const char *const fills[CHART_LINES] = {"fa pale", "fb pale", "fc pale", "fd pale"};

svg_point chart_at(const chart *c, double x, double y) {
    return (svg_point){c->left + (x - c->x.low) / (c->x.high - c->x.low) * c->width,
        c->top + (c->y.high - y) / (c->y.high - c->y.low) * c->height};
}

static void draw_ticks(const chart *c) {
    char text[48];
    double bottom = c->top + c->height;
    for (int i = 0; i < c->y.ticks; i++) {
        double y = chart_at(c, c->x.low, c->y.at[i]).y;
        svg_line(c->s, "grid", (svg_point){c->left, y}, (svg_point){c->left + c->width, y});
        svg_words(c->s, "dim small", SVG_END, (svg_point){c->left - 6, y + 4},
            axis_label(&c->y, c->y.at[i], text, sizeof text), 0);
    }
    for (int i = 0; i < c->x.ticks; i++) {
        double x = chart_at(c, c->x.at[i], c->y.low).x;
        svg_line(c->s, "axis", (svg_point){x, bottom}, (svg_point){x, bottom + 4});
        svg_words(c->s, "dim small", SVG_MIDDLE, (svg_point){x, bottom + 17},
            axis_label(&c->x, c->x.at[i], text, sizeof text), 0);
    }
    svg_line(c->s, "axis", (svg_point){c->left, bottom}, (svg_point){c->left + c->width, bottom});
}

chart chart_open(svg *s, const chart_place *at, axis x, axis y) {
    chart c = {.s = s,
        .left = LEFT,
        .top = at->top + ABOVE,
        .width = s->width - LEFT - RIGHT,
        .height = at->height - ABOVE - BELOW,
        .x = x,
        .y = y};
    draw_ticks(&c);
    svg_words(s, "dim small", SVG_START, (svg_point){4, at->top + 14}, at->y, 0);
    svg_words(s, "dim small", SVG_END, (svg_point){c.left + c.width, c.top + c.height + 36}, at->x, 0);
    c.legend = 4 + LETTER * (double)strlen(at->y) + 22;
    return c;
}

static svg_point *place(const chart *c, const double *x, const double *y, int count) {
    svg_point *at = malloc(((size_t)count + 1) * sizeof *at);
    NEED(at, "out of memory for %d points", count);
    for (int i = 0; i < count; i++) at[i] = chart_at(c, x[i], y[i]);
    return at;
}

static void add_legend(chart *c, int kind, const char *name) {
    double y = c->top - ABOVE + 10;
    svg_line(c->s, strokes[kind], (svg_point){c->legend, y}, (svg_point){c->legend + 24, y});
    svg_words(c->s, "small", SVG_START, (svg_point){c->legend + 29, y + 4}, name, 32);
    c->legend += 29 + LETTER * (double)strlen(name) + 14;
}

void chart_line(chart *c, const points *p, int kind, const char *name) {
    svg_point *at = place(c, p->x, p->y, p->count);
    svg_path(c->s, p->count > DENSE ? thin_strokes[kind] : strokes[kind], at, p->count);
    if (p->count == 1 && isfinite(p->y[0])) svg_circle(c->s, fills[kind], at[0], 3.5);
    free(at);
    if (name) add_legend(c, kind, name);
}

void chart_band(chart *c, const double *x, const double *low, const double *high, int count, int kind) {
    svg_point *bottom = place(c, x, low, count), *top = place(c, x, high, count);
    svg_area(c->s, fills[kind], top, bottom, count);
    free(bottom);
    free(top);
}

void chart_area(chart *c, const points *p, double base, int kind) {
    double *flat = malloc(((size_t)p->count + 1) * sizeof *flat);
    double *value = malloc(((size_t)p->count + 1) * sizeof *value);
    NEED(flat && value, "out of memory for %d points", p->count);
    for (int i = 0; i < p->count; i++) {
        flat[i] = base;
        value[i] = isfinite(p->y[i]) ? p->y[i] : base;
    }
    chart_band(c, p->x, flat, value, p->count, kind);
    free(flat);
    free(value);
}

void chart_dots(chart *c, const points *p, int kind) {
    static const char *const classes[CHART_LINES] = {"fa", "fb", "fc", "fd"};
    for (int i = 0; i < p->count; i++) {
        svg_point at = chart_at(c, p->x[i], p->y[i]);
        if (!isfinite(p->x[i]) || !isfinite(p->y[i])) continue;
        if (kind == 0)
            svg_circle(c->s, classes[kind], at, 3.5);
        else if (kind == 3)
            svg_rect(c->s, classes[kind], at.x - 3, at.y - 3, 6, 6);
        else
            svg_triangle(c->s, classes[kind], at, 4, kind == 1);
    }
}

void chart_mark(chart *c, double x, const char *word) {
    svg_point at = chart_at(c, x, c->y.high);
    bool left = at.x > c->left + c->width / 2;
    svg_line(c->s, "mark", at, (svg_point){at.x, c->top + c->height});
    svg_words(c->s, "small", left ? SVG_END : SVG_START, (svg_point){at.x + (left ? -5 : 5), at.y + 12}, word, 0);
}

const limits limits_none = {INFINITY, -INFINITY};

limits limits_add(limits e, const double *v, int count) {
    for (int i = 0; i < count; i++) {
        if (!isfinite(v[i])) continue;
        e.low = fmin(e.low, v[i]);
        e.high = fmax(e.high, v[i]);
    }
    return e;
}

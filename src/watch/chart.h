// A chart inside a figure: a frame with labelled axes, and lines, areas and marks in it.
#ifndef TRADEWIND_WATCH_CHART_H
#define TRADEWIND_WATCH_CHART_H

#include "watch/axis.h"
#include "watch/svg.h"

typedef struct {
    svg *s;
    double left, top, width, height; // of the plot
    axis x, y;
    double legend; // where the next name of it begins
} chart;

// Values over x; NaN is a gap.
typedef struct {
    int count;
    const double *x, *y;
} points;

// Kinds of lines: they differ in colour and dashes.
enum { CHART_LINES = 4 };

typedef struct {
    double top, height; // of the chart within its figure, names of the axes and legend included
    const char *x, *y;  // names of the axes
} chart_place;

// Draws the frame over the figure's whole width.
chart chart_open(svg *s, const chart_place *at, axis x, axis y);

svg_point chart_at(const chart *c, double x, double y);

// A line and its name in the legend; NULL: no name.
void chart_line(chart *c, const points *p, int kind, const char *name);

// The area between two lists of values; between a list and a value.
void chart_band(chart *c, const double *x, const double *low, const double *high, int count, int kind);
void chart_area(chart *c, const points *p, double base, int kind);

// Dots at the points, of the shape of their kind.
void chart_dots(chart *c, const points *p, int kind);

// A vertical line with a word.
void chart_mark(chart *c, double x, const char *word);

// The least and the most of lists of values, for an axis; NaN are skipped.
typedef struct {
    double low, high;
} limits;

extern const limits limits_none;
limits limits_add(limits e, const double *v, int count);

#endif

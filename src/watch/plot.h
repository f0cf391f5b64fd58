// Curves in a grid of characters: in braille dots, eight to a cell, or in stars where there is nothing but ASCII.
#ifndef TRADEWIND_WATCH_PLOT_H
#define TRADEWIND_WATCH_PLOT_H

#include "watch/cells.h"
#include "watch/trace.h"

typedef struct {
    const trace *line[2]; // the second one may be NULL; where both lie in a cell it has the first one's colour
    int zoom;             // the newest 1 / 2^zoom of the range
    bool logarithm;       // of values, where all are above 0
    const char *x;        // name of the range: "epoch"
} plot;

// Draws into an area: labels of the values at the left, of the range below. Every extreme of what is shown is drawn.
void plot_draw(cells *g, area a, const plot *p);

#endif

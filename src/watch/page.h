// The page of a report: one HTML file with everything in it, which asks for nothing from anywhere and runs no script.
#ifndef TRADEWIND_WATCH_PAGE_H
#define TRADEWIND_WATCH_PAGE_H

#include "watch/figure.h"

#include <stdio.h>

// A figure as it stands in the page. `wide` is shown in place of `narrow` where there is room; NULL: never.
typedef struct {
    const figure *of;
    char *narrow, *wide;
} page_figure;

typedef struct {
    const facts *facts;
    const json_t *summary; // of watch/summary.h
    const page_figure *figure;
    int figures;
} page;

void page_write(const page *p, FILE *out);

#endif

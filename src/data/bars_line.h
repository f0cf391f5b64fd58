// A row of bars read from a line of text, as the layout of its file says. Files and feeds read rows here.
#ifndef TRADEWIND_DATA_BARS_LINE_H
#define TRADEWIND_DATA_BARS_LINE_H

#include "data/bars_rows.h"

typedef struct {
    int64_t line;
    int64_t clock;   // the time of day, where it has a column of its own
    int missing;     // a bit for each price
    double price[4]; // open, high, low, close
    text symbol;     // in the line; empty where no column names it
    row row;         // its bar's time is on the file's clock unless utc; no end
} bars_line;

// Reads line `number` of a text called `name`. ERR_INPUT that names both where it is no row.
bool bars_line_read(bars_line *g, const char *name, const layout *l, int64_t number, text line, err *e);

// True where the line is the layout's header once more.
bool bars_line_is_header(const layout *l, text line);

// False, and ERR_INPUT, where a price is missing. Of rows that `all_missing` allows, all four may be.
bool bars_line_whole(const bars_line *g, const char *name, bool all_missing, err *e);

// Why the row is left out; BARS_FINDINGS where it is not.
bars_finding bars_line_judge(const bars_line *g, const layout *l, bool keep_filled);

#endif

// Rows on their way to bars: read from the text, put in order, cut to one frame.
#ifndef TRADEWIND_DATA_BARS_ROWS_H
#define TRADEWIND_DATA_BARS_ROWS_H

#include "data/bars.h"
#include "data/bars_layout.h"
#include "data/when.h"

// A bar and where it came from. Until bars_rows_order its time is on the file's clock unless `utc`.
typedef struct {
    bar bar;
    uint64_t line : 63;
    uint64_t utc : 1;
} row;

typedef struct {
    row *row;
    size_t count, room;
    bars_report *report;
    const char *name;
} rows;

// Notes a case of a finding.
void bars_rows_tally(rows *r, bars_finding f, int64_t line);

// Reads every row behind the header; those without usable prices are counted and left out.
bool bars_rows_read(rows *r, const layout *l, const bars_options *o, err *e);

// Moves all to UTC and into strictly ascending order.
void bars_rows_order(rows *r, const when_zone *z);

// Finds the span, and drops the coarse beginning where told. False where memory is short. Needs two rows; leaves two.
bool bars_rows_frame(rows *r, bool keep_coarse, int64_t *span, err *e);

// Counts what is odd in the bars that stay: weekends, flat bars, gaps, ... False where memory is short, or a check
// refuses them.
bool bars_rows_survey(rows *r, const layout *l, const when_zone *z, int64_t span, const bars_options *o, err *e);

#endif

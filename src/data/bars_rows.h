// Rows on their way to bars: read from the text, put in order, cut to one frame.
#ifndef TRADEWIND_DATA_BARS_ROWS_H
#define TRADEWIND_DATA_BARS_ROWS_H

#include "data/bars.h"
#include "data/bars_layout.h"
#include "data/when.h"

enum { ROW_LINE_BITS = 46 };

// A bar and where it came from. Until bars_rows_order its time is on the file's clock unless `utc`.
typedef struct {
    bar bar;
    uint64_t line : ROW_LINE_BITS;
    int64_t offset : 16; // in minutes, where the stamp names its own
    uint64_t utc : 1;
    uint64_t coarse : 1; // of a stretch of coarser bars behind the beginning
} row;

typedef struct {
    row *row;
    size_t count, room;
    bars_report *report;
    const char *name;
    char symbol[BARS_SYMBOL_ROOM]; // "" where the file names none
    int64_t upside_down;           // rows left out whose high is below their low
} rows;

// The rows of a file, apart by symbol. All begin as zeros.
typedef struct {
    rows *item;
    int count, room;
    uint16_t *slot; // a hash table of places in `item`, counted from 1
    int last;       // the place found last
} row_groups;

// True where a text can be a symbol, "" too: at most BARS_SYMBOL_ROOM - 1 letters, digits and _ - . # / = ^.
bool bars_symbol_ok(text symbol);

// The group of a symbol, made where it is new. NULL on failure; ERR_INPUT where the symbol cannot be one.
rows *bars_groups_find(row_groups *g, const char *name, text symbol, int64_t line, err *e);

// Puts the groups in order of their symbols; nothing can be found afterwards.
void bars_groups_sort(row_groups *g);
void bars_groups_done(row_groups *g);

// Notes a case of a finding.
void bars_rows_tally(rows *r, bars_finding f, int64_t line);

// Moves `rest` on to a row stamped before `from`, with none or few such rows behind it, where the file is in rising
// order; the last 64 rows stay in any case. `*lines` counts what is passed over.
void bars_rows_skip(const layout *l, int64_t from, text *rest, int64_t *lines);

// Reads every row behind the header into the group of its symbol; rows without usable prices are counted and left out.
bool bars_rows_read(row_groups *all, const char *name, const layout *l, const bars_options *o, err *e);

// Moves all to UTC and into ascending order; strictly so, with one row of each stamp, where `unite`.
void bars_rows_order(rows *r, const when_zone *z, bool unite);

// Finds the span, and drops stretches of coarser bars unless told. False where memory is short. Needs two rows and
// leaves one or more; one row is enough where spans are known, ERR_INPUT where several of these fit it.
bool bars_rows_frame(rows *r, const bars_options *o, int64_t *span, err *e);

// Gives every bar its end, by the clock of the file. `*own` is the zone that stamps with offsets of their own show
// where those change, or NULL; the caller frees it. ERR_INPUT where no zone fits them and ends depend on it.
bool bars_rows_end(
    rows *r, const layout *l, const when_zone *z, const bars_options *o, int64_t span, when_zone **own, err *e);

// Rows behind the bars that are known already, as bars_options tells of them; the rows alone where none are.
typedef struct {
    rows all;      // row is not owned where it is the file's own
    size_t before; // known bars
    size_t seam;   // place of the first row that is newer than all known bars; 0 where none are known
} joined_rows;

// False where memory is short. Rows that change later are not seen.
bool bars_rows_join(joined_rows *j, const rows *r, int64_t span, const bars_options *o, err *e);
void bars_rows_join_done(joined_rows *j, const rows *r);

// Refuses prices that cannot be, as the head of bars_prices.c tells, unless forced; notes jumps and wicks. Rows that go
// on from known bars are judged with these, from the seam on. Fewer than 32 bars are not judged.
bool bars_rows_prices(rows *r, const joined_rows *j, int64_t span, unsigned force, err *e);

// Counts what is odd in the bars that stay: weekends, flat bars, gaps, ... False where memory is short, or a check
// refuses them.
bool bars_rows_survey(
    rows *r, const joined_rows *j, const layout *l, const when_zone *z, int64_t span, const bars_options *o, err *e);

#endif

// Bar files: what trading platforms and data sellers export, read into one array of bars in time order.
//
// The format is recognised from the content, never from the file's name. Known are: MetaTrader 5 terminal exports
// (tabs, commas or semicolons; with and without a header; daily ones without a time), the MetaTrader 5 Python API,
// Binance klines, Yahoo and yfinance, Dukascopy, HistData, Investing, Nasdaq, Stooq, a pandas index, and any table
// whose header names open, high, low, close and a time, or whose columns the caller names. Tick exports are refused by
// name. UTF-8 with or without a mark and UTF-16 are read, plain or packed (text_file.h).
//
// Rows are never invented. A row is left out, and counted, where
//   - all four prices are missing (empty, null, NaN), as Yahoo writes holidays;
//   - a price is zero or negative, or high and low do not enclose open and close;
//   - another row with the same stamp follows it: of several the last one in the file stays;
//   - it belongs to a stretch of coarser bars, as long MetaTrader histories begin with them (unless keep_coarse);
//   - it is flat without volume in a Dukascopy file, which is how Dukascopy fills closed hours (unless keep_filled).
// Everything else that is odd is kept and counted. A row that cannot be read (a stamp or number that is none, some
// prices missing, an infinity, a column too few) is an error that names its line: what is wrong there is not known.
//
// Files that run from new to old are turned round. Otherwise rows out of place are sorted; rows of the same stamp keep
// the order of the file.
//
// A column that names the instrument (symbol, ticker, instrument, sym) splits the file: each symbol becomes bars of its
// own, put in order, cut and surveyed by themselves. Rows of different instruments are never joined.
//
// The close is the traded one: Yahoo's "Adj Close" is not used. The volume is the tick volume where there are two.
#ifndef TRADEWIND_DATA_BARS_H
#define TRADEWIND_DATA_BARS_H

#include "base/err.h"
#include "base/json.h"
#include "data/bar.h"
#include "data/bars_force.h"
#include "data/when.h"

#include <stdio.h>

// A single bar beside the bars that are known of a span.
typedef enum { BARS_FIT_NOT, BARS_FIT_NEWER, BARS_FIT_KNOWN } bars_fit;

typedef struct {
    const char *tz;        // the zone of the file's clock, as when.h names them; NULL: UTC, for HistData EST. Binance's
                           // stamps and those that name their own offset are UTC whatever is given here
    when_order date_order; // of dates such as 03/04/2024; none: as the file's own numbers show, else they are refused
    const char *columns;   // "time=Date,close=Price": which column is which, before what their names say; NULL: none.
                           // Roles are time, date, open, high, low, close, volume, spread and symbol. Columns of a file
                           // without a header are given by number, from 1
    bool keep_coarse;      // keep stretches of coarser bars
    bool keep_filled;      // keep Dukascopy's bars of closed hours
    bool as_is;            // leave no row out and judge none, for fills on the very rows of a file: rows of one stamp
                           // keep their order; spans and ends are not found; a row without a price above 0 is an error
    unsigned force;        // checks that are overruled: bits of bars_force
    int64_t from;          // rows stamped before this are not read where the file is in rising order; 0: all are
    int64_t written; // when the file was written, to tell whether its last bar was over; 0: bars_read asks the file
    const int64_t *spans; // that bars can have, where they are known: then one bar is enough, and few bars with holes
    int span_count;       // between them are of the coarsest span that fits, and bars_read_list gives no items of a
                          // file with a header alone; 0: spans are found from the steps alone
    // Bars of a symbol ("" of none) and a span that open before a moment and are known already: the hours that they
    // show count for gaps, and their prices for those that follow. `*count` of them, which the reader frees; NULL where
    // there are none. `*newest` is the open of the newest known bar, also where it is not before the moment; as it was
    // where none is known. The function may be NULL
    bar *(*before)(const void *arg, const char *symbol, int64_t span, int64_t until, int64_t *count, int64_t *newest);
    // Judges whether a single bar fits what is known of a symbol and a span; NULL: all spans fit alike
    bars_fit (*fits)(const void *arg, const char *symbol, int64_t span, const bar *b);
    const void *arg;
    bool *unclear; // set where a file is refused as its single bar may be of several spans; NULL: not asked
} bars_options;

typedef enum {
    // Rows left out:
    BARS_EMPTY,        // all prices missing
    BARS_NOT_POSITIVE, // a price of zero or less
    BARS_HIGH_LOW,     // high or low does not enclose open and close
    BARS_FILLED,       // Dukascopy: flat, no volume
    BARS_DUPLICATE,    // equal to a later row, its stamp too
    BARS_CONFLICT,     // the stamp of a later row, other figures
    BARS_COARSE,       // of a stretch of coarser bars
    BARS_STRADDLING,   // the first row after it, where it still holds the range of a whole coarse bar: the future
    // Rows and steps that are kept:
    BARS_UNSORTED,   // earlier than a row before it in the file (once a file from new to old is turned round)
    BARS_REPEATED,   // shown twice by a clock that went back
    BARS_SKIPPED,    // never shown by a clock that went forward: is the zone right?
    BARS_WEEKEND,    // opened on a Saturday or Sunday of the file's clock
    BARS_FLAT,       // open, high, low and close are equal
    BARS_NO_VOLUME,  // a volume column that says 0, less, or nothing
    BARS_NO_SPREAD,  // a spread column that says 0, less, or nothing: unknown
    BARS_SHORT_STEP, // sooner after the bar before it than the span
    BARS_JUMP,       // opens far from the close before it
    BARS_WICK,       // a high or low far from its open and close
    BARS_GAP,        // bars are missing before it: see bars_report
    BARS_FINDINGS
} bars_finding;

typedef struct {
    int64_t count;
    int64_t line; // of the first case, counted from 1; 0 where there is none
} bars_tally;

typedef enum {
    BARS_FINISHED,
    BARS_OPEN_WHEN_WRITTEN, // the file was written before the last bar was over
    BARS_THIN,              // the last bar's volume is below a tenth of the median of the 50 before it
} bars_last;

// Rows of a coarser frame.
typedef struct {
    int64_t rows;
    int64_t span;        // their usual step
    int64_t first, last; // moments of the first and the last of them
    int64_t line;        // of the first
} bars_stretch;

// Rules by which a market's hours move in summer; bits.
typedef enum { BARS_SEASONS_NONE = 0, BARS_SEASONS_NEW_YORK = 1, BARS_SEASONS_EUROPE = 2 } bars_seasons;

enum { BARS_STRETCHES_MOST = 8, BARS_HOURS_TEXT = 320 };

// A gap is a step over at least one slot of the week in which the market is open, as bars_hours.h tells from the file.
// So weekends and nights are no gaps, holidays and interruptions are. Of spans over a day, a step of two spans is a
// gap. A file in which no time of day has bars on 90 % of the days is refused as thinned out.
typedef struct {
    int64_t rows; // read, blank lines and headers not counted
    bars_tally tally[BARS_FINDINGS];
    bool turned;           // the file ran from new to old
    bool end_only;         // rows before `from` were not read
    int64_t missing;       // bars, in all gaps
    int64_t missing_first; // of these, between known bars and the first one
    double jump;           // the largest, as open / close before; 0: none
    int64_t jump_line;     // of the bar after it
    double wick;           // the largest, as high or low / the nearer of open and close; 0: none
    int64_t wick_line;
    int64_t longest, longest_at; // seconds of the longest gap from bar to bar, and the bar before it
    int64_t coarse_rows;         // at the beginning, kept or not; 0: none
    int64_t coarse_span;         // their usual step
    int64_t coarse_until;        // the last of them
    int64_t stretches;           // of coarser bars after the beginning, kept or not; the first ones follow
    bars_stretch stretch[BARS_STRETCHES_MOST];
    bars_seasons seasons;           // in which hours differ
    char hours[2][BARS_HOURS_TEXT]; // of the week, at the file's end; in summer too where they differ; "": not known
    bool hours_pattern;             // hours look like a hole: see bars_hours_text.h
    int hours_changes;              // how often they changed
    int64_t hours_since;            // the last time: a Monday on the file's clock
    int64_t first, last;            // bars
    bars_last last_bar;
    bool has_volume, has_spread; // columns that say something: all zero is as good as none
    char zone[72];               // of the file's clock; "as stamped" where the stamps say
    bool zone_assumed;
    unsigned forced;         // checks that found something and were overruled: bits of bars_force
    when_order date_order;   // of dates that need one, where it was found in the file
    int64_t date_order_line; // the line that shows it
} bars_report;

enum {
    BARS_SYMBOL_ROOM = 32,    // bytes of a symbol, with its end
    BARS_SYMBOLS_MOST = 4096, // in one file
};

typedef struct {
    char symbol[BARS_SYMBOL_ROOM]; // as the file writes it: letters, digits and _ - . # / = ^; "" where it names none
    bar *bar;                      // [count], times strictly ascending; as_is: ascending
    int64_t count;
    int64_t span;       // seconds: the usual step between bars; as_is: 0
    const char *format; // "Binance klines"; static
    bars_report report;
} bars;

typedef struct {
    bars *item; // [count] in order of their symbols
    int count;
} bars_list;

// Reads a file of one or more instruments, with as many items as it has symbols: one where no column names them. On
// failure `l` is empty, with the errors of bars_read.
bool bars_read_list(bars_list *l, const char *path, const bars_options *o, err *e);
bool bars_parse_list(bars_list *l, const char *name, const char *text, size_t size, const bars_options *o, err *e);

// Safe to call twice.
void bars_list_done(bars_list *l);

// Reads a file of one instrument; several are ERR_INPUT that names them. On failure `b` is empty. ERR_INPUT with
// "FILE:LINE: ..." where the content is at fault; fewer than two bars are refused, as they have no span.
bool bars_read(bars *b, const char *path, const bars_options *o, err *e);

// The same from memory; `name` stands for the file in messages. `o` may be NULL in both.
bool bars_parse(bars *b, const char *name, const char *text, size_t size, const bars_options *o, err *e);

// Safe to call twice.
void bars_done(bars *b);

// True where rows of this kind were left out rather than kept.
bool bars_left_out(bars_finding f);

// A finding in a word ("high_low") and in a few ("high or low does not enclose open and close").
const char *bars_finding_key(bars_finding f);
const char *bars_finding_text(bars_finding f);

// The report for people: a few aligned lines, findings with a count of zero left out.
void bars_report_print(FILE *out, const char *name, const bars *b);

// The same in a line, and further lines where something is left out, unclear or unfinished.
void bars_report_brief(FILE *out, const char *name, const bars *b);

// The same for --json; NULL where memory is short or `name` is not UTF-8.
json_t *bars_report_json(const char *name, const bars *b);

#endif

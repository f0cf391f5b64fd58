// Layout of a bar file: its format, its separator, which column holds what, and where its rows begin.
#ifndef TRADEWIND_DATA_BARS_LAYOUT_H
#define TRADEWIND_DATA_BARS_LAYOUT_H

#include "data/bars.h"
#include "data/bars_text.h"

enum { COLUMNS_MOST = 256 };

typedef enum {
    ROLE_NONE, // not used
    ROLE_STAMP,
    ROLE_DATE,  // a day, with ROLE_CLOCK for the time on it
    ROLE_CLOCK, //
    ROLE_OPEN,  // the four prices stay in this order
    ROLE_HIGH,
    ROLE_LOW,
    ROLE_CLOSE,
    ROLE_VOLUME,
    ROLE_SPREAD,
    ROLE_SYMBOL,
    ROLES
} column_role;

typedef enum {
    FORMAT_MT5_TERMINAL,
    FORMAT_MT5_BARE, // the same without a header
    FORMAT_MT5_PYTHON,
    FORMAT_BINANCE,
    FORMAT_YAHOO,
    FORMAT_DUKASCOPY,
    FORMAT_HISTDATA,
    FORMAT_INVESTING,
    FORMAT_NASDAQ,
    FORMAT_STOOQ,
    FORMAT_PANDAS,
    FORMAT_TABLE,      // columns by name
    FORMAT_TABLE_BARE, // a stamp, then open, high, low, close, volume
} bars_format;

typedef struct {
    bars_format format;
    char separator;
    int columns;
    unsigned char role[COLUMNS_MOST];
    bool has[ROLES];
    text header;        // the line; empty where there is none
    text title[ROLES];  // of the column in the header; empty where there is none
    bool utc;           // format or header say that stamps are UTC
    text rest;          // from the first row on
    int64_t lines;      // before it
    when_order order;   // of dates that need one
    int64_t order_line; // the line that shows it; 0 where the caller or the format says it
} layout;

const char *bars_layout_format(bars_format f);
const char *bars_layout_role(column_role r); // "close"

// The zone of the clock that stamps show, `tz` being what the caller says or NULL.
const char *bars_layout_zone(const layout *l, const char *tz);

// Recognises `all`. ERR_INPUT where it is no bar file, says what it looks like.
bool bars_layout_find(layout *l, const char *name, text all, const bars_options *o, err *e);

// Splits a line into cells; false where it has more than COLUMNS_MOST.
bool bars_layout_split(text line, char separator, text *cell, int *count);

// Gives a column its role.
void bars_layout_set(layout *l, int column, column_role r);

// Gives the columns that `columns` names their roles; `title` holds the header's cells, or NULL where there is none.
bool bars_columns_map(layout *l, const char *name, const text *title, const char *columns, err *e);

// True where `columns` gives a place by number to the time and the four prices, so that no header is needed.
bool bars_columns_are_places(const char *columns);

// Finds the order of the dates.
void bars_dates_find(layout *l, const bars_options *o);

#endif

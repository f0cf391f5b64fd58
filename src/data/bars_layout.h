// What a bar file is: its format, its separator, which column holds what, and where its rows begin.
#ifndef TRADEWIND_DATA_BARS_LAYOUT_H
#define TRADEWIND_DATA_BARS_LAYOUT_H

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
    bool utc;      // format or header say that stamps are UTC
    text rest;     // from the first row on
    int64_t lines; // before it
} layout;

const char *bars_layout_format(bars_format f);
const char *bars_layout_role(column_role r); // "close"

// Recognises `all`. ERR_INPUT where it is no bar file, says what it looks like.
bool bars_layout_find(layout *l, const char *name, text all, err *e);

#endif

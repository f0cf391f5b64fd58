#include "data/bars_layout.h"

#include "data/bars_number.h"
#include "data/when.h"

#include <string.h>

enum { NAME_ROOM = 24 };

const char *bars_layout_format(bars_format f) {
    static const char *const names[] = {
        [FORMAT_MT5_TERMINAL] = "MetaTrader 5 terminal",
        [FORMAT_MT5_BARE] = "MetaTrader terminal without a header",
        [FORMAT_MT5_PYTHON] = "MetaTrader 5 Python API",
        [FORMAT_BINANCE] = "Binance klines",
        [FORMAT_YAHOO] = "Yahoo Finance",
        [FORMAT_DUKASCOPY] = "Dukascopy",
        [FORMAT_HISTDATA] = "HistData",
        [FORMAT_PANDAS] = "pandas index",
        [FORMAT_TABLE] = "table with named columns",
        [FORMAT_TABLE_BARE] = "table without a header",
    };
    return names[f];
}

const char *bars_layout_role(column_role r) {
    static const char *const names[ROLES] = {
        "", "time", "date", "time", "open", "high", "low", "close", "volume", "spread", "symbol"};
    return names[r];
}

// A header's names, in the form of bars_text_name.
typedef struct {
    int columns;
    char name[COLUMNS_MOST][NAME_ROOM];
} header;

static int header_at(const header *h, const char *name) {
    for (int i = 0; i < h->columns; i++)
        if (!strcmp(h->name[i], name)) return i;
    return -1;
}

static bool header_has(const header *h, const char *name) {
    return header_at(h, name) >= 0;
}

// Tabs before semicolons before commas: the later ones may stand inside cells of the earlier.
static char separator_of(text line) {
    if (memchr(line.at, '\t', line.size)) return '\t';
    return memchr(line.at, ';', line.size) ? ';' : ',';
}

static bool too_many(const char *name, int64_t line, err *e) {
    return err_input(e, "%s:%lld: has more than %d columns; is it a bar file?", name, (long long)line, COLUMNS_MOST);
}

// Splits a line; false where it has too many cells.
static bool split(text line, char separator, text *cell, int *count) {
    bool more = true;
    for (*count = 0; more; ++*count) {
        if (*count == COLUMNS_MOST) return false;
        cell[*count] = bars_text_cell(&line, separator, &more);
    }
    return true;
}

static void set_role(layout *l, int column, column_role r) {
    l->role[column] = (unsigned char)r;
    l->has[r] = true;
}

// The next line that is not blank.
static bool next_line(layout *l, text *line) {
    while (bars_text_line(&l->rest, line)) {
        l->lines++;
        if (line->size) return true;
    }
    return false;
}

static bool refuse_ticks(const char *name, const header *h, err *e) {
    const char *who = header_has(h, "flags") ? "a MetaTrader 5 tick export" : "a file of ticks";
    return err_input(e, "%s: is %s (bid and ask), not bars; export bars, for example of one minute", name, who);
}

// Where the time is: a column that says so, or the first one when it has no name, as a pandas index.
static bool find_time(layout *l, const header *h, const char *name, err *e) {
    static const char *const stamps[] = {
        "datetime", "timestamp", "gmttime", "localtime", "utctime", "opentime", "time", "date"};
    if (header_has(h, "date") && header_has(h, "time")) {
        set_role(l, header_at(h, "date"), ROLE_DATE);
        set_role(l, header_at(h, "time"), ROLE_CLOCK);
        return true;
    }
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        int column = header_at(h, stamps[i]);
        if (column < 0) continue;
        set_role(l, column, ROLE_STAMP);
        return true;
    }
    if (!strcmp(h->name[0], "") || !strcmp(h->name[0], "unnamed0") || !strcmp(h->name[0], "index")) {
        set_role(l, 0, ROLE_STAMP);
        return true;
    }
    return err_input(
        e, "%s:%lld: has no column for the time; name it time, date or datetime", name, (long long)l->lines);
}

static bool find_prices(layout *l, const header *h, const char *name, err *e) {
    for (column_role r = ROLE_OPEN; r <= ROLE_CLOSE; r++) {
        int column = header_at(h, bars_layout_role(r));
        if (column < 0)
            return err_input(e, "%s:%lld: has no column named %s; a bar file needs open, high, low and close", name,
                (long long)l->lines, bars_layout_role(r));
        for (int i = column + 1; i < h->columns; i++)
            if (!strcmp(h->name[i], bars_layout_role(r)))
                return err_input(e, "%s:%lld: has two columns named %s; keep the columns of one market", name,
                    (long long)l->lines, bars_layout_role(r));
        set_role(l, column, r);
    }
    return true;
}

static void find_rest(layout *l, const header *h) {
    static const char *const volumes[] = {"tickvol", "tickvolume", "volume", "vol", "realvolume"};
    for (size_t i = 0; i < sizeof volumes / sizeof *volumes && !l->has[ROLE_VOLUME]; i++)
        if (header_has(h, volumes[i])) set_role(l, header_at(h, volumes[i]), ROLE_VOLUME);
    if (header_has(h, "spread")) set_role(l, header_at(h, "spread"), ROLE_SPREAD);
    static const char *const symbols[] = {"symbol", "ticker", "instrument", "sym"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols && !l->has[ROLE_SYMBOL]; i++)
        if (header_has(h, symbols[i])) set_role(l, header_at(h, symbols[i]), ROLE_SYMBOL);
}

static bars_format format_of(const header *h, text line) {
    if (header_has(h, "opentime") && header_has(h, "closetime")) return FORMAT_BINANCE;
    if (header_has(h, "gmttime") || (header_has(h, "localtime") && header_has(h, "volume"))) return FORMAT_DUKASCOPY;
    if (memchr(line.at, '<', line.size)) return FORMAT_MT5_TERMINAL;
    if (header_has(h, "adjclose")) return FORMAT_YAHOO;
    if (header_has(h, "tickvolume") && header_has(h, "time")) return FORMAT_MT5_PYTHON;
    if (!strcmp(h->name[0], "")) return FORMAT_PANDAS;
    return FORMAT_TABLE;
}

// yfinance writes three header lines: Price, Ticker, Date. The columns stand in the first, the time is the first
// column.
static bool is_yfinance(const layout *l, const header *h) {
    if (strcmp(h->name[0], "price") != 0) return false;
    text rest = l->rest, line, cell[COLUMNS_MOST];
    char word[NAME_ROOM];
    int count;
    if (!bars_text_line(&rest, &line) || !split(line, l->separator, cell, &count)) return false;
    bars_text_name(word, sizeof word, cell[0]);
    return !strcmp(word, "ticker");
}

// Skips the lines Ticker and Date; whichever is missing is a row already.
static void skip_yfinance(layout *l) {
    for (int i = 0; i < 2; i++) {
        layout before = *l;
        text line, cell[COLUMNS_MOST];
        char word[NAME_ROOM];
        int count;
        if (!next_line(l, &line) || !split(line, l->separator, cell, &count)) return;
        bars_text_name(word, sizeof word, cell[0]);
        if (strcmp(word, "ticker") != 0 && strcmp(word, "date") != 0 && strcmp(word, "datetime") != 0) {
            *l = before;
            return;
        }
    }
}

static bool by_header(layout *l, const char *name, text line, const text *cell, err *e) {
    header h = {.columns = l->columns};
    for (int i = 0; i < h.columns; i++) bars_text_name(h.name[i], NAME_ROOM, cell[i]);
    if (header_has(&h, "bid") && header_has(&h, "ask") && !header_has(&h, "open")) return refuse_ticks(name, &h, e);
    if (!find_prices(l, &h, name, e)) return false;
    find_rest(l, &h);
    if (is_yfinance(l, &h)) {
        l->format = FORMAT_YAHOO;
        set_role(l, 0, ROLE_STAMP);
        skip_yfinance(l);
        return true;
    }
    l->format = format_of(&h, line);
    l->utc = l->format == FORMAT_BINANCE || header_has(&h, "gmttime") || header_has(&h, "utctime");
    return find_time(l, &h, name, e);
}

static bool refuse_bare(const char *name, int64_t line, const char *what, err *e) {
    return err_input(e, "%s:%lld: has no header, and its first row is not a bar: %s", name, (long long)line, what);
}

// Without a header the columns are known from their order: the time, then open, high, low, close, volume.
static bool by_order(layout *l, const char *name, const text *cell, const when_stamp *first, err *e) {
    int at = 1;
    int64_t clock;
    bool dated = first->shape == WHEN_DATE && l->columns > 1 && when_read_clock(cell[1].at, cell[1].size, &clock);
    set_role(l, 0, dated ? ROLE_DATE : ROLE_STAMP);
    if (first->shape == WHEN_TICK)
        return err_input(e, "%s: is a HistData tick file, not bars; take their 1-minute bars", name);
    if (dated && memchr(cell[1].at, '.', cell[1].size))
        return err_input(e, "%s: is a MetaTrader 5 tick export (times with milliseconds), not bars; export bars", name);
    if (dated) set_role(l, at++, ROLE_CLOCK);
    int figures = l->columns - at;
    while (figures && !cell[at + figures - 1].size) figures--; // a separator at the end of the line
    if (figures < 4) return refuse_bare(name, l->lines, "it needs a time, open, high, low and close", e);
    bool ok = true;
    for (int i = 0; i < 4; i++) {
        double v;
        ok &= bars_number(cell[at + i].at, cell[at + i].size, &v) != NUMBER_BAD;
        set_role(l, at + i, (column_role)(ROLE_OPEN + i));
    }
    if (!ok) return refuse_bare(name, l->lines, "open, high, low and close must be numbers", e);
    if (figures > 4) set_role(l, at + 4, ROLE_VOLUME);
    bool dots = cell[0].size >= 5 && cell[0].at[4] == '.'; // 2024.01.02
    l->format = FORMAT_TABLE_BARE;
    if (first->shape == WHEN_EPOCH && l->columns == 12) l->format = FORMAT_BINANCE;
    l->utc = l->format == FORMAT_BINANCE;
    if (first->shape == WHEN_COMPACT) l->format = FORMAT_HISTDATA;
    if (dated || dots) l->format = FORMAT_MT5_BARE;
    if (l->format == FORMAT_MT5_BARE && figures == 7) set_role(l, at + 6, ROLE_SPREAD);
    return true;
}

bool bars_layout_find(layout *l, const char *name, text all, err *e) {
    *l = (layout){.rest = all};
    text line, cell[COLUMNS_MOST];
    do {
        if (!next_line(l, &line)) return err_input(e, "%s: is empty; expected bars", name);
    } while (line.size == 5 && !memcmp(line.at, "sep=", 4)); // Excel's hint
    if (memchr(line.at, 0, line.size))
        return err_input(e, "%s:%lld: contains zero bytes; this is no text file", name, (long long)l->lines);
    l->separator = separator_of(line);
    if (!split(line, l->separator, cell, &l->columns)) return too_many(name, l->lines, e);
    when_stamp first;
    double v;
    if (when_read(cell[0].at, cell[0].size, &first)) {
        if (!by_order(l, name, cell, &first, e)) return false;
        l->rest = (text){line.at, (size_t)(all.at + all.size - line.at)};
        l->lines--;
        return true;
    }
    if (l->columns > 1 && cell[1].size && bars_number(cell[1].at, cell[1].size, &v) == NUMBER_OK) {
        char shown[40];
        return err_input(e, "%s:%lld: '%s' is not a time; write 2024-01-31 or 2024-01-31 09:30:00", name,
            (long long)l->lines, bars_text_show(shown, sizeof shown, cell[0]));
    }
    return by_header(l, name, line, cell, e);
}

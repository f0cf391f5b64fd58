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
        [FORMAT_INVESTING] = "Investing",
        [FORMAT_NASDAQ] = "Nasdaq",
        [FORMAT_STOOQ] = "Stooq",
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

const char *bars_layout_zone(const layout *l, const char *tz) {
    if (l->format == FORMAT_BINANCE) return "UTC";
    if (tz && *tz) return tz;
    return l->format == FORMAT_HISTDATA ? "EST" : "UTC";
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

bool bars_layout_split(text line, char separator, text *cell, int *count) {
    bool more = true;
    for (*count = 0; more; ++*count) {
        if (*count == COLUMNS_MOST) return false;
        cell[*count] = bars_text_cell(&line, separator, &more);
    }
    return true;
}

void bars_layout_set(layout *l, int column, column_role r) {
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

// The column of the first of some names that the header has; -1 where it has none.
static int first_of(const header *h, const char *const *names, size_t count) {
    int column = -1;
    for (size_t i = 0; i < count && column < 0; i++) column = header_at(h, names[i]);
    return column;
}

// Where the time is: a column that says so, or the first one when it has no name, as a pandas index.
static bool find_time(layout *l, const header *h, const char *name, err *e) {
    static const char *const stamps[] = {"datetime", "timestamp", "gmttime", "localtime", "utctime", "opentime", "time",
        "date", "windowstart", "tsevent"};
    int clock = header_at(h, "time"), date = header_at(h, "date");
    if (l->has[ROLE_STAMP]) return true;
    if (l->has[ROLE_DATE]) {
        if (!l->has[ROLE_CLOCK] && clock >= 0) bars_layout_set(l, clock, ROLE_CLOCK);
        return true;
    }
    if (date >= 0 && clock >= 0) {
        bars_layout_set(l, date, ROLE_DATE);
        bars_layout_set(l, clock, ROLE_CLOCK);
        return true;
    }
    int column = first_of(h, stamps, sizeof stamps / sizeof *stamps);
    if (column < 0 && (!strcmp(h->name[0], "") || !strcmp(h->name[0], "unnamed0") || !strcmp(h->name[0], "index")))
        column = 0;
    if (column < 0)
        return err_input(e,
            "%s:%lld: has no column for the time; name it time, date or datetime, or say --columns time=NAME "
            "(data.columns)",
            name, (long long)l->lines);
    bars_layout_set(l, column, ROLE_STAMP);
    return true;
}

// The column of a price; -1 where there is none. Closes have further names.
static int price_at(const layout *l, const header *h, column_role r) {
    static const char *const closes[] = {"close", "closelast", "last", "latest"};
    if (r != ROLE_CLOSE) return header_at(h, bars_layout_role(r));
    if (l->format == FORMAT_INVESTING) return header_at(h, "price");
    return first_of(h, closes, sizeof closes / sizeof *closes);
}

static bool find_prices(layout *l, const header *h, const char *name, err *e) {
    for (column_role r = ROLE_OPEN; r <= ROLE_CLOSE; r++) {
        const char *word = bars_layout_role(r);
        if (l->has[r]) continue;
        int column = price_at(l, h, r);
        if (column < 0)
            return err_input(e,
                "%s:%lld: has no column named %s; a bar file needs open, high, low and close; another column is named "
                "with --columns %s=NAME (data.columns)",
                name, (long long)l->lines, word, word);
        for (int i = column + 1; i < h->columns; i++)
            if (!strcmp(h->name[i], h->name[column]))
                return err_input(e, "%s:%lld: has two columns named %s; keep the columns of one market", name,
                    (long long)l->lines, word);
        bars_layout_set(l, column, r);
    }
    return true;
}

static void find_rest(layout *l, const header *h) {
    static const char *const volumes[] = {"tickvol", "tickvolume", "volume", "vol", "realvolume"};
    static const char *const symbols[] = {"symbol", "ticker", "instrument", "sym"};
    int volume = first_of(h, volumes, sizeof volumes / sizeof *volumes), spread = header_at(h, "spread");
    int symbol = first_of(h, symbols, sizeof symbols / sizeof *symbols);
    if (volume >= 0 && !l->has[ROLE_VOLUME]) bars_layout_set(l, volume, ROLE_VOLUME);
    if (spread >= 0 && !l->has[ROLE_SPREAD]) bars_layout_set(l, spread, ROLE_SPREAD);
    if (symbol >= 0 && !l->has[ROLE_SYMBOL]) bars_layout_set(l, symbol, ROLE_SYMBOL);
}

static bars_format format_of(const header *h, text line) {
    if (header_has(h, "opentime") && header_has(h, "closetime")) return FORMAT_BINANCE;
    if (header_has(h, "gmttime") || (header_has(h, "localtime") && header_has(h, "volume"))) return FORMAT_DUKASCOPY;
    if (memchr(line.at, '<', line.size)) return header_has(h, "per") ? FORMAT_STOOQ : FORMAT_MT5_TERMINAL;
    if (header_has(h, "adjclose")) return FORMAT_YAHOO;
    if (header_has(h, "tickvolume") && header_has(h, "time")) return FORMAT_MT5_PYTHON;
    if (header_has(h, "closelast")) return FORMAT_NASDAQ;
    if (header_has(h, "price") && header_has(h, "change") && !header_has(h, "close")) return FORMAT_INVESTING;
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
    if (!bars_text_line(&rest, &line) || !bars_layout_split(line, l->separator, cell, &count)) return false;
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
        if (!next_line(l, &line) || !bars_layout_split(line, l->separator, cell, &count)) return;
        bars_text_name(word, sizeof word, cell[0]);
        if (strcmp(word, "ticker") != 0 && strcmp(word, "date") != 0 && strcmp(word, "datetime") != 0) {
            *l = before;
            return;
        }
    }
}

static bool by_header(layout *l, const char *name, text line, const text *cell, const bars_options *o, err *e) {
    header h = {.columns = l->columns};
    for (int i = 0; i < h.columns; i++) bars_text_name(h.name[i], NAME_ROOM, cell[i]);
    if (header_has(&h, "bid") && header_has(&h, "ask") && !header_has(&h, "open")) return refuse_ticks(name, &h, e);
    l->format = format_of(&h, line);
    if (o->columns && !bars_columns_map(l, name, cell, o->columns, e)) return false;
    for (int i = 0; i < h.columns; i++)
        if (l->role[i]) memcpy(h.name[i], "*", 2); // no other role finds it
    if (!find_prices(l, &h, name, e)) return false;
    find_rest(l, &h);
    bool yfinance = is_yfinance(l, &h);
    if (yfinance) {
        l->format = FORMAT_YAHOO;
        bars_layout_set(l, 0, ROLE_STAMP);
        skip_yfinance(l);
    }
    l->utc = l->format == FORMAT_BINANCE || header_has(&h, "gmttime") || header_has(&h, "utctime");
    if (!yfinance && !find_time(l, &h, name, e)) return false;
    for (int i = 0; i < h.columns; i++) l->title[l->role[i]] = cell[i];
    return true;
}

static bool refuse_bare(const char *name, int64_t line, const char *what, err *e) {
    return err_input(e, "%s:%lld: has no header, and its first row is not a bar: %s", name, (long long)line, what);
}

// Without a header the columns are known from their order: the time, then open, high, low, close, volume.
static bool by_order(layout *l, const char *name, const text *cell, const when_stamp *first, err *e) {
    int at = 1;
    int64_t clock;
    bool dated = first->shape == WHEN_DATE && l->columns > 1 && memchr(cell[1].at, ':', cell[1].size) &&
                 when_read_clock(cell[1].at, cell[1].size, &clock);
    bars_layout_set(l, 0, dated ? ROLE_DATE : ROLE_STAMP);
    if (first->shape == WHEN_TICK)
        return err_input(e, "%s: is a HistData tick file, not bars; take their 1-minute bars", name);
    if (dated && memchr(cell[1].at, '.', cell[1].size))
        return err_input(e, "%s: is a MetaTrader 5 tick export (times with milliseconds), not bars; export bars", name);
    if (dated) bars_layout_set(l, at++, ROLE_CLOCK);
    int figures = l->columns - at;
    while (figures && !cell[at + figures - 1].size) figures--; // a separator at the end of the line
    if (figures < 4) return refuse_bare(name, l->lines, "it needs a time, open, high, low and close", e);
    bool ok = true;
    for (int i = 0; i < 4; i++) {
        double v;
        ok &= bars_number(cell[at + i].at, cell[at + i].size, &v) != NUMBER_BAD;
        bars_layout_set(l, at + i, (column_role)(ROLE_OPEN + i));
    }
    if (!ok) return refuse_bare(name, l->lines, "open, high, low and close must be numbers", e);
    if (figures > 4) bars_layout_set(l, at + 4, ROLE_VOLUME);
    bool dots = cell[0].size >= 5 && cell[0].at[4] == '.'; // 2024.01.02
    l->format = FORMAT_TABLE_BARE;
    if (first->shape == WHEN_EPOCH && l->columns == 12) l->format = FORMAT_BINANCE;
    l->utc = l->format == FORMAT_BINANCE;
    if (first->shape == WHEN_COMPACT) l->format = FORMAT_HISTDATA;
    if (dated || dots) l->format = FORMAT_MT5_BARE;
    if (l->format == FORMAT_MT5_BARE && figures == 7) bars_layout_set(l, at + 6, ROLE_SPREAD);
    return true;
}

// True where a cell is a time, with its date in any order.
static bool is_stamp(text cell, const bars_options *o, when_stamp *first) {
    if (when_read_as(cell.at, cell.size, o->date_order, first)) return true;
    return when_read_as(cell.at, cell.size, WHEN_MDY, first) || when_read_as(cell.at, cell.size, WHEN_DMY, first);
}

// Columns given by their places on top of the usual order. None of those that a bar needs may be lost.
static bool by_order_and_places(layout *l, const char *name, const bars_options *o, err *e) {
    if (!bars_columns_map(l, name, NULL, o->columns, e)) return false;
    for (column_role r = ROLE_OPEN; r <= ROLE_CLOSE; r++)
        if (!l->has[r])
            return err_input(e, "%s:%lld: has no column left for %s; add %s=NUMBER to --columns", name,
                (long long)l->lines, bars_layout_role(r), bars_layout_role(r));
    if (l->has[ROLE_STAMP] || l->has[ROLE_DATE]) return true;
    return err_input(
        e, "%s:%lld: has no column left for the time; add time=NUMBER to --columns", name, (long long)l->lines);
}

// A file whose columns are all given by their places; its first line may be a header nevertheless.
static bool by_places(layout *l, const char *name, const text *cell, const bars_options *o, bool *header, err *e) {
    when_stamp first;
    l->format = FORMAT_TABLE_BARE;
    if (!bars_columns_map(l, name, NULL, o->columns, e)) return false;
    for (int i = 0; i < l->columns; i++)
        if (l->role[i] == ROLE_STAMP || l->role[i] == ROLE_DATE) *header = !is_stamp(cell[i], o, &first);
    return true;
}

static bool by_first_line(
    layout *l, const char *name, text line, const text *cell, const bars_options *o, bool *header, err *e) {
    when_stamp first;
    double v;
    *header = false;
    if (o->columns && bars_columns_are_places(o->columns)) return by_places(l, name, cell, o, header, e);
    if (is_stamp(cell[0], o, &first))
        return by_order(l, name, cell, &first, e) && (!o->columns || by_order_and_places(l, name, o, e));
    if (l->columns > 1 && cell[1].size && bars_number(cell[1].at, cell[1].size, &v) == NUMBER_OK) {
        char shown[40];
        return err_input(e, "%s:%lld: '%s' is not a time; write 2024-01-31 or 2024-01-31 09:30:00", name,
            (long long)l->lines, bars_text_show(shown, sizeof shown, cell[0]));
    }
    *header = true;
    return by_header(l, name, line, cell, o, e);
}

bool bars_layout_find(layout *l, const char *name, text all, const bars_options *o, err *e) {
    *l = (layout){.rest = all};
    text line, cell[COLUMNS_MOST];
    bool header;
    do {
        if (!next_line(l, &line)) return err_input(e, "%s: is empty; expected bars", name);
    } while (line.size == 5 && !memcmp(line.at, "sep=", 4)); // Excel's hint
    if (memchr(line.at, 0, line.size))
        return err_input(e, "%s:%lld: contains zero bytes; this is no text file", name, (long long)l->lines);
    l->separator = separator_of(line);
    if (!bars_layout_split(line, l->separator, cell, &l->columns)) return too_many(name, l->lines, e);
    if (!by_first_line(l, name, line, cell, o, &header, e)) return false;
    if (header) l->header = line;
    if (!header) {
        l->rest = (text){line.at, (size_t)(all.at + all.size - line.at)};
        l->lines--;
    }
    bars_dates_find(l, o);
    return true;
}

#include "live/row_reader.h"

#include "base/json.h"
#include "data/bars_line.h"
#include "data/bars_number.h"
#include "data/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 4, HEAD_LINES = 3, TABLE_ROOM = 2 * FEED_LINE_MOST, PASSES = 1024, NAME_ROOM = 24 };

// Columns of a table: those of bars are in its layout.
typedef struct {
    char *header; // the text that the layout's titles lie in; NULL: the shape is free
    layout layout;
    const when_zone *zone; // the reader's, or `own`
    when_zone *own;
    int span, closed;           // columns; -1: none
    bool quotes;                // then these are columns
    int bid, ask, time, symbol; //
} shape;

// The newest row of a series: a clock that is put back shows an hour twice.
typedef struct {
    uint64_t series;
    int64_t local, time;
} pass;

struct row_reader {
    const feed_options *options;
    const char *name;
    char symbol[BARS_SYMBOL_ROOM];
    int64_t span;
    when_zone *zone;           // that the options name, or UTC
    shape text, keyed[SHAPES]; // of plain rows; of objects and pairs, by their keys
    int next_keyed;
    char head[HEAD_LINES * (FEED_LINE_MOST + 1) + 1]; // lines that may be a header
    size_t head_size;
    int head_lines;
    char header[TABLE_ROOM], row[TABLE_ROOM]; // a line of keys and one of values
    size_t header_size, row_size;
    pass pass[PASSES];
    size_t hint;
};

static void shape_done(shape *s) {
    free(s->header);
    when_zone_free(s->own);
    *s = (shape){0};
}

static const char *usual_zone(const feed_options *o) {
    return o->bars.tz && *o->bars.tz ? o->bars.tz : "UTC";
}

row_reader *row_reader_new(const feed_options *o, const char *name, const char *symbol, int64_t span, err *e) {
    err why = {0};
    when_zone *z = when_zone_new(usual_zone(o), &why);
    if (!z) {
        err_input(e, "%s: %s", name, why.text);
        return NULL;
    }
    row_reader *r = calloc(1, sizeof *r);
    NEED(r, "no memory to read %s", name);
    r->options = o;
    r->zone = z;
    r->name = name;
    snprintf(r->symbol, sizeof r->symbol, "%s", symbol);
    row_reader_span(r, span);
    return r;
}

void row_reader_free(row_reader *r) {
    if (!r) return;
    row_reader_reset(r);
    when_zone_free(r->zone);
    free(r);
}

void row_reader_reset(row_reader *r) {
    shape_done(&r->text);
    for (int i = 0; i < SHAPES; i++) shape_done(&r->keyed[i]);
    r->head_size = 0;
    r->head_lines = 0;
    memset(r->pass, 0, sizeof r->pass);
}

void row_reader_span(row_reader *r, int64_t span) {
    r->span = span ? span : r->options->span_count == 1 ? r->options->spans[0] : 0;
}

// Shapes

// The column of the first of some names, parted by blanks; -1 where there is none.
static int column_of(char name[][NAME_ROOM], int columns, const char *names) {
    for (const char *word = names; *word;) {
        size_t n = strcspn(word, " ");
        for (int i = 0; i < columns; i++)
            if (strlen(name[i]) == n && !memcmp(name[i], word, n)) return i;
        word += n + (word[n] == ' ');
    }
    return -1;
}

// Looks for columns that import has no use for. False where the header is no line of names.
static bool find_further(shape *s, text header) {
    text cell[COLUMNS_MOST];
    char name[COLUMNS_MOST][NAME_ROOM];
    int columns;
    s->span = s->closed = -1;
    if (!header.size) return false;
    char separator = memchr(header.at, '\t', header.size) ? '\t' : memchr(header.at, ';', header.size) ? ';' : ',';
    if (!bars_layout_split(header, separator, cell, &columns)) return false;
    for (int i = 0; i < columns; i++) bars_text_name(name[i], NAME_ROOM, cell[i]);
    s->span = column_of(name, columns, "span frame timeframe interval");
    s->closed = column_of(name, columns, "closed isclosed complete final x");
    s->bid = column_of(name, columns, "bid");
    s->ask = column_of(name, columns, "ask");
    s->time = column_of(name, columns, "time timestamp datetime date");
    s->symbol = column_of(name, columns, "symbol ticker instrument sym");
    s->quotes = s->bid >= 0 && s->ask >= 0 && column_of(name, columns, "open o") < 0;
    s->layout.separator = separator;
    return true;
}

// The zone of the clock that stamps of this layout show.
static bool shape_zone(shape *s, const row_reader *r, err *e) {
    const char *name = bars_layout_zone(&s->layout, r->options->bars.tz);
    s->zone = r->zone;
    if (strcmp(name, usual_zone(r->options)) == 0) return true;
    return (s->zone = s->own = when_zone_new(name, e)) != NULL;
}

// Finds the layout of a text's first lines, which it copies.
static bool shape_find(shape *s, const row_reader *r, text head, err *e) {
    err why = {0};
    text first = {"", 0}, rest;
    *s = (shape){.header = malloc(head.size + 1)};
    NEED(s->header, "no memory to read %s", r->name);
    memcpy(s->header, head.at, head.size);
    s->header[head.size] = 0;
    rest = (text){s->header, head.size};
    bars_text_line(&rest, &first);
    bool ok = find_further(s, first) && s->quotes;
    if (ok) {
        ok = s->time >= 0 || err_input(&why, "%s:1: has no column for the time of its quotes; name it time", r->name);
        s->layout.order = r->options->bars.date_order;
        s->layout.header = first;
    } else {
        ok = bars_layout_find(&s->layout, r->name, (text){s->header, head.size}, &r->options->bars, &why);
        if (ok) find_further(s, s->layout.header);
    }
    ok = ok && shape_zone(s, r, &why);
    if (ok) return true;
    if (e) *e = why;
    shape_done(s);
    return false;
}

// Rows

static bool unreadable(feed_raw *raw, const char *text) {
    feed_raw_note(raw, FEED_UNREADABLE, "%s", text);
    return true;
}

// The same with the place before the text.
static bool bad(const row_reader *r, feed_raw *raw, int64_t number, const char *what) {
    feed_raw_note(raw, FEED_UNREADABLE, "%s:%lld: %s", r->name, (long long)number, what);
    return true;
}

static text cell_of(const shape *s, text row, int column) {
    bool more = column >= 0;
    text cell = {"", 0};
    for (int i = 0; more && i <= column; i++) {
        cell = bars_text_cell(&row, s->layout.separator, &more);
        if (i < column && !more) return (text){"", 0};
    }
    return cell;
}

static bool span_read(text cell, int64_t *span) {
    const double most = 366.0 * WHEN_DAY;
    double seconds;
    if (frame_read(cell.at, cell.size, span)) return true;
    if (bars_number(cell.at, cell.size, &seconds) != NUMBER_OK || !(seconds >= 1 && seconds <= most)) return false;
    *span = when_step_span((int64_t)seconds);
    return true;
}

static bool says_no(text cell) {
    static const char *const words[] = {"0", "false", "no", "n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (cell.size == strlen(words[i]) && !memcmp(cell.at, words[i], cell.size)) return true;
    return false;
}

static bool take_symbol(const row_reader *r, text symbol, feed_event *ev) {
    if (!symbol.size) {
        memcpy(ev->symbol, r->symbol, sizeof ev->symbol);
        return true;
    }
    if (!bars_symbol_ok(symbol)) return false;
    memcpy(ev->symbol, symbol.at, symbol.size);
    return true;
}

// The moment of a stamp on the clock of the text.
static int64_t moment_of(row_reader *r, const shape *s, const feed_event *ev, int64_t local) {
    uint64_t hash = 14695981039346656037u ^ (uint64_t)ev->span; // FNV-1a
    for (const char *c = ev->symbol; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    hash |= 1; // 0 is free
    pass *p = &r->pass[(hash >> 20) % PASSES];
    bool known = p->series == hash;
    if (known && p->local == local) return p->time;
    when_kind kind;
    p->time = when_utc(s->zone, local, known ? p->time : INT64_MIN, &r->hint, &kind);
    p->local = local;
    p->series = hash;
    return p->time;
}

// Puts a bar's open and end into UTC. False where its end is not known.
static bool settle(row_reader *r, const shape *s, const row *w, feed_event *ev) {
    const char *tz = r->options->bars.tz;
    size_t none = 0;
    ev->bar = w->bar;
    ev->local = w->bar.time + (w->utc ? w->offset * 60 : 0);
    if (!w->utc) ev->bar.time = moment_of(r, s, ev, ev->local);
    ev->bar.end = ev->bar.time + ev->span;
    if (ev->span <= WHEN_HOUR) return true;
    if (w->utc && w->offset && !(tz && *tz)) return false;
    if (w->utc && !w->offset && s->layout.format != FORMAT_BINANCE && ev->span <= WHEN_WEEK) return true;
    ev->bar.end = when_bar_end(s->zone, ev->bar.time, ev->span, w->utc ? &none : &r->hint);
    return true;
}

// The row, with the order of its date found in it where nothing showed it before.
static bool read_line(bars_line *g, const row_reader *r, shape *s, text row, int64_t number, err *e) {
    if (bars_line_read(g, r->name, &s->layout, number, row, e)) return true;
    if (s->layout.order != WHEN_ORDER_NONE) return false;
    s->layout.rest = row;
    s->layout.lines = number - 1;
    bars_dates_find(&s->layout, &r->options->bars);
    s->layout.rest = (text){"", 0};
    return s->layout.order != WHEN_ORDER_NONE && bars_line_read(g, r->name, &s->layout, number, row, e);
}

// Bid and ask of a row; false, with none, where they are no prices, or none that an account can hold.
static bool take_prices(const shape *s, text row, feed_event *ev) {
    const double least = 1e-8, most = 9e10;
    text bid = cell_of(s, row, s->bid), ask = cell_of(s, row, s->ask);
    bool ok = bars_number(bid.at, bid.size, &ev->bid) == NUMBER_OK &&
              bars_number(ask.at, ask.size, &ev->ask) == NUMBER_OK && ev->bid >= least && ev->ask >= ev->bid &&
              ev->ask <= most;
    if (!ok) ev->bid = ev->ask = 0;
    return ok;
}

static bool take_bar(row_reader *r, shape *s, text row, int64_t number, feed_raw *raw) {
    err e = {0};
    bars_line g;
    feed_event *ev = &raw->event;
    if (bars_line_is_header(&s->layout, row)) return false;
    if (!read_line(&g, r, s, row, number, &e) || !bars_line_whole(&g, r->name, true, &e))
        return unreadable(raw, e.text);
    bars_finding f = bars_line_judge(&g, &s->layout, r->options->bars.keep_filled);
    if (f == BARS_EMPTY || f == BARS_FILLED) return false;
    if (f != BARS_FINDINGS) return bad(r, raw, number, bars_finding_text(f));
    text span = cell_of(s, row, s->span);
    ev->span = r->span;
    if (span.size && !span_read(span, &ev->span)) return bad(r, raw, number, "its span is none; write 5m or 1h");
    if (!ev->span) return bad(r, raw, number, "does not say its span; add a column or key frame, as in 5m or 1h");
    if (!take_symbol(r, g.symbol, ev))
        return bad(r, raw, number, "its symbol is no name of at most 31 letters, digits and _ - . # / = ^");
    if (!settle(r, s, &g.row, ev))
        return bad(r, raw, number, "its stamp names an offset; name its zone (data.tz), so that its end is known");
    if (s->bid >= 0 && s->ask >= 0) take_prices(s, row, ev);
    text closed = cell_of(s, row, s->closed);
    raw->state = !closed.size ? FEED_AS_TOLD : says_no(closed) ? FEED_UNFINISHED : FEED_CLOSED;
    return true;
}

static bool take_quote(row_reader *r, shape *s, text row, int64_t number, feed_raw *raw) {
    feed_event *ev = &raw->event;
    text time = cell_of(s, row, s->time);
    when_stamp at;
    if (bars_line_is_header(&s->layout, row)) return false;
    if (!when_read_as(time.at, time.size, s->layout.order, &at)) return bad(r, raw, number, "its time is none");
    if (!take_prices(s, row, ev)) return bad(r, raw, number, "bid and ask are no prices of 1e-8 to 9e10");
    if (!take_symbol(r, cell_of(s, row, s->symbol), ev)) return bad(r, raw, number, "its symbol is no name");
    ev->kind = FEED_QUOTE;
    ev->local = at.time + (at.utc ? at.offset * 60 : 0);
    ev->bar.time = ev->bar.end = at.utc ? at.time : moment_of(r, s, ev, at.time);
    return true;
}

static bool take_row(row_reader *r, shape *s, text row, int64_t number, feed_raw *raw) {
    return s->quotes ? take_quote(r, s, row, number, raw) : take_bar(r, s, row, number, raw);
}

// Tables of one row: objects and pairs

static bool append(char *to, size_t *size, const char *at, size_t n) {
    if (*size + n + 2 > TABLE_ROOM) return false;
    if (*size) to[(*size)++] = '\t';
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)at[i];
        to[(*size)++] = c < 32 || c == '"' ? ' ' : (char)c;
    }
    if (!n) to[(*size)++] = ' ';
    return true;
}

static bool append_pair(row_reader *r, const char *key, size_t key_size, const char *value, size_t value_size) {
    return append(r->header, &r->header_size, key, key_size) && append(r->row, &r->row_size, value, value_size);
}

// A value as text; false where it is an object or an array.
static bool value_text(const json_t *v, char *buf, size_t n, const char **at, size_t *size) {
    *at = buf;
    if (json_is_string(v)) {
        *at = json_string_value(v);
        *size = json_string_length(v);
        return true;
    }
    if (json_is_integer(v)) snprintf(buf, n, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    if (json_is_real(v)) snprintf(buf, n, "%.17g", json_real_value(v));
    if (json_is_boolean(v)) snprintf(buf, n, "%s", json_is_true(v) ? "true" : "false");
    if (json_is_null(v)) *buf = 0;
    *size = strlen(buf);
    return !json_is_object(v) && !json_is_array(v);
}

static bool table_of_object(row_reader *r, text line, err *e) {
    err why = {0};
    const char *key;
    json_t *j = json_read(line.at, line.size, &why), *v;
    if (!j) return err_input(e, "%.300s", why.text);
    bool ok = json_is_object(j) || err_input(e, "is no object");
    if (ok) json_object_foreach(j, key, v) {
            char buf[40] = "";
            const char *at;
            size_t size;
            if (value_text(v, buf, sizeof buf, &at, &size)) ok = ok && append_pair(r, key, strlen(key), at, size);
        }
    json_decref(j);
    return ok || err_input(e, "is too long");
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static bool table_of_pairs(row_reader *r, text line, err *e) {
    const char *p = line.at, *end = p + line.size;
    while (p < end) {
        const char *key = p;
        while (p < end && is_name(*p)) p++;
        size_t key_size = (size_t)(p - key);
        if (!key_size || p == end || *p++ != '=') return err_input(e, "is no row of key=value pairs");
        bool quoted = p < end && *p == '"';
        const char *value = p += quoted;
        while (p < end && (quoted ? *p != '"' : !strchr(" ,;\t", *p))) p++;
        if (quoted && p == end) return err_input(e, "a quote is not closed");
        if (!append_pair(r, key, key_size, value, (size_t)(p - value))) return err_input(e, "is too long");
        p += quoted;
        while (p < end && strchr(" ,;\t", *p)) p++;
    }
    return true;
}

static bool is_pairs(text line) {
    size_t n = 0;
    while (n < line.size && is_name(line.at[n])) n++;
    bool letter = (*line.at >= 'a' && *line.at <= 'z') || (*line.at >= 'A' && *line.at <= 'Z');
    return letter && n + 1 < line.size && line.at[n] == '=' &&
           !(n == 3 && line.size == 5 && !memcmp(line.at, "sep", 3));
}

// The shape of the header, made where it is new.
static shape *keyed_shape(row_reader *r, err *e) {
    text header = {r->header, r->header_size};
    for (int i = 0; i < SHAPES; i++) {
        shape *s = &r->keyed[i];
        if (s->header && strlen(s->header) == header.size && !memcmp(s->header, header.at, header.size)) return s;
    }
    shape *s = &r->keyed[r->next_keyed];
    r->next_keyed = (r->next_keyed + 1) % SHAPES;
    shape_done(s);
    return shape_find(s, r, header, e) ? s : NULL;
}

// The reason, without the place in the made-up table.
static const char *behind_place(const row_reader *r, const char *text) {
    size_t n = strlen(r->name);
    if (strncmp(text, r->name, n) != 0 || text[n] != ':') return text;
    const char *at = text + n + 1;
    at += strspn(at, "0123456789");
    return strncmp(at, ": ", 2) == 0 ? at + 2 : text + n + 1 + (text[n + 1] == ' ');
}

static bool take_keyed(row_reader *r, text line, int64_t number, feed_raw *raw) {
    err e = {0};
    r->header_size = r->row_size = 0;
    bool ok = *line.at == '{' ? table_of_object(r, line, &e) : table_of_pairs(r, line, &e);
    shape *s = ok ? keyed_shape(r, &e) : NULL;
    if (!s) return bad(r, raw, number, behind_place(r, e.text));
    return take_row(r, s, (text){r->row, r->row_size}, number, raw);
}

// Plain rows

// True where a header may go on in the lines behind this one, as yfinance writes it.
static bool may_go_on(const row_reader *r, text line) {
    char name[NAME_ROOM];
    bool more;
    char separator = memchr(line.at, ';', line.size) ? ';' : ',';
    text rest = line;
    bars_text_name(name, sizeof name, bars_text_cell(&rest, separator, &more));
    return r->head_lines < HEAD_LINES && (!strcmp(name, "price") || (r->head_lines == 2 && !strcmp(name, "ticker")));
}

// The first lines, until they show the layout. True where `line` is the first row.
static bool take_head(row_reader *r, text line, int64_t number, feed_raw *raw, bool *told) {
    err e = {0};
    memcpy(r->head + r->head_size, line.at, line.size);
    r->head_size += line.size;
    r->head[r->head_size++] = '\n';
    r->head_lines++;
    *told = false;
    if (may_go_on(r, line)) return false;
    bool ok = shape_find(&r->text, r, (text){r->head, r->head_size}, &e);
    r->head_size = 0;
    r->head_lines = 0;
    if (!ok) *told = bad(r, raw, number, behind_place(r, e.text));
    if (!ok || r->text.quotes) return false;
    bool row = r->text.layout.rest.size > 0;
    r->text.layout.rest = (text){"", 0};
    return row;
}

bool row_reader_take(row_reader *r, text line, int64_t number, feed_raw *raw) {
    *raw = (feed_raw){.event = {.kind = FEED_BAR}};
    bool told;
    if (!line.size) return false;
    if (line.size > FEED_LINE_MOST || memchr(line.at, 0, line.size)) return bad(r, raw, number, "is no line of text");
    if (*line.at == '{' || (!r->text.header && is_pairs(line))) return take_keyed(r, line, number, raw);
    if (!r->text.header && !take_head(r, line, number, raw, &told)) return told;
    return take_row(r, &r->text, line, number, raw);
}

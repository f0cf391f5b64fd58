// The one loop over a file's text. It allocates only to grow the array of rows.
#include "data/bars_rows.h"

#include "base/stop.h"
#include "data/bars_number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bars_rows_tally(rows *r, bars_finding f, int64_t line) {
    bars_tally *t = &r->report->tally[f];
    if (!t->count++ || line < t->line) t->line = line;
}

// Room for one more. The first guess comes from the bytes that one symbol has and the length of a short row, so that
// growing is rare.
static bool grow(rows *r, size_t bytes_expected, err *e) {
    enum { SHORT_ROW = 48, FIRST = 64 };
    if (r->count < r->room) return true;
    size_t room = r->room ? r->room + r->room / 2 : bytes_expected / SHORT_ROW + FIRST, bytes;
    row *more = NULL;
    if (!__builtin_mul_overflow(room, sizeof *more, &bytes)) more = realloc(r->row, bytes);
    if (!more) return err_run(e, "%s: no memory for %zu rows", r->name, room);
    r->row = more;
    r->room = room;
    return true;
}

// What a line says, and what is wrong with it.
typedef struct {
    int64_t line;
    int64_t clock;
    int missing;     // a bit for each price
    double price[4]; // open, high, low, close
    text symbol;
    row row;
} reading;

static bool bad_cell(const char *name, int64_t line, column_role role, text cell, const char *advice, err *e) {
    char shown[40];
    if (!cell.size)
        return err_input(
            e, "%s:%lld: %s is empty; fill it or remove the row", name, (long long)line, bars_layout_role(role));
    return err_input(e, "%s:%lld: %s '%s' is not a %s; %s", name, (long long)line, bars_layout_role(role),
        bars_text_show(shown, sizeof shown, cell), role <= ROLE_CLOCK ? "time" : "finite number", advice);
}

static bool bad_stamp(const char *name, const layout *l, int64_t line, column_role role, text cell, err *e) {
    when_order shown;
    char advice[96];
    if (!when_order_of(cell.at, cell.size, &shown))
        return bad_cell(name, line, role, cell, "write 2024-01-31 or 2024-01-31 09:30:00", e);
    char text[40];
    if (l->order == WHEN_ORDER_NONE)
        return err_input(e,
            "%s:%lld: %s '%s' does not show the order of day and month; say --date-order dmy, mdy or ymd "
            "(data.date_order)",
            name, (long long)line, bars_layout_role(role), bars_text_show(text, sizeof text, cell));
    if (l->order_line)
        snprintf(advice, sizeof advice, "line %lld shows the order %s; correct one of them", (long long)l->order_line,
            when_order_text(l->order));
    else
        snprintf(advice, sizeof advice, "dates are read in the order %s; --date-order names another",
            when_order_text(l->order));
    return bad_cell(name, line, role, cell, advice, e);
}

static const char *number_advice(text cell) {
    bool comma = false;
    for (size_t i = 0; i < cell.size; i++) {
        if (cell.at[i] == ',') comma = true;
        if (cell.at[i] != ',' && (cell.at[i] < '0' || cell.at[i] > '9')) return "correct or remove the row";
    }
    return comma ? "export with decimal points" : "correct or remove the row";
}

static bool read_stamp(const char *name, const layout *l, reading *g, column_role role, text cell, err *e) {
    when_stamp s;
    if (!when_read_as(cell.at, cell.size, l->order, &s) ||
        (role == ROLE_DATE && l->has[ROLE_CLOCK] && s.shape != WHEN_DATE))
        return bad_stamp(name, l, g->line, role, cell, e);
    g->row.bar.time = s.time;
    g->row.utc = s.utc;
    g->row.offset = s.offset;
    return true;
}

static bool read_cell(const char *name, const layout *l, reading *g, column_role role, text cell, err *e) {
    double v;
    if (role == ROLE_SYMBOL) {
        g->symbol = cell;
        return cell.size || bad_cell(name, g->line, role, cell, "", e);
    }
    if (role <= ROLE_DATE) return read_stamp(name, l, g, role, cell, e);
    if (role == ROLE_CLOCK)
        return when_read_clock(cell.at, cell.size, &g->clock) ||
               bad_cell(name, g->line, role, cell, "write 09:30:00", e);
    number_kind kind = bars_number(cell.at, cell.size, &v);
    if (kind == NUMBER_BAD) {
        bool english = l->format == FORMAT_INVESTING || l->format == FORMAT_NASDAQ;
        kind = bars_number_dressed(cell.at, cell.size, english, role == ROLE_VOLUME, &v);
    }
    if (kind == NUMBER_BAD) return bad_cell(name, g->line, role, cell, number_advice(cell), e);
    if (role == ROLE_VOLUME)
        g->row.bar.volume = v > 0 ? v : 0; // some sources say -1 for none
    else if (role == ROLE_SPREAD)
        g->row.bar.spread = v > 0 ? v : 0;
    else
        g->price[role - ROLE_OPEN] = v;
    g->missing |= kind == NUMBER_MISSING && role <= ROLE_CLOSE ? 1 << (role - ROLE_OPEN) : 0;
    return true;
}

static bool read_line(const char *name, const layout *l, reading *g, text line, err *e) {
    bool more = true;
    int column = 0;
    for (; more; column++) {
        text cell = bars_text_cell(&line, l->separator, &more);
        if (column >= l->columns) {
            if (!cell.size) continue;
            return err_input(e, "%s:%lld: has more than %d columns; correct or remove the row", name,
                (long long)g->line, l->columns);
        }
        column_role role = (column_role)l->role[column];
        if (role != ROLE_NONE && !read_cell(name, l, g, role, cell, e)) return false;
    }
    if (column >= l->columns) return true;
    return err_input(e, "%s:%lld: has %d column%s, not %d; is the file cut short?", name, (long long)g->line, column,
        column == 1 ? "" : "s", l->columns);
}

// A line that cannot be read may be the header once more, as where files are put one behind the other. Returns false.
static bool tell_header(const char *name, const layout *l, int64_t number, text line, err *e) {
    if (!l->header.size || line.size != l->header.size || memcmp(line.at, l->header.at, line.size) != 0) return false;
    return err_input(e, "%s:%lld: is a second header; remove the line", name, (long long)number);
}

// The row that was read, or why it is left out: BARS_FINDINGS where it is not.
static bars_finding judge(const reading *g, const layout *l, const bars_options *o) {
    const double open = g->price[0], high = g->price[1], low = g->price[2], close = g->price[3];
    if (o->as_is) return BARS_FINDINGS;
    if (g->missing) return BARS_EMPTY;
    if (open <= 0 || high <= 0 || low <= 0 || close <= 0) return BARS_NOT_POSITIVE;
    if (low > open || low > close || high < open || high < close) return BARS_HIGH_LOW;
    bool filled = l->format == FORMAT_DUKASCOPY && high == low && g->row.bar.volume == 0;
    return filled && !o->keep_filled ? BARS_FILLED : BARS_FINDINGS;
}

static bool add(rows *r, const layout *l, const bars_options *o, reading *g, size_t bytes_expected, err *e) {
    enum { ALL = 15 };
    r->report->rows++;
    if (g->missing && (g->missing != ALL || o->as_is)) {
        column_role role = ROLE_OPEN;
        while (!(g->missing & 1 << (role - ROLE_OPEN))) role++;
        return err_input(e, "%s:%lld: %s is missing (empty, NaN or null); fill it or remove the row", r->name,
            (long long)g->line, bars_layout_role(role));
    }
    for (int i = 0; i < 4 && o->as_is; i++)
        if (g->price[i] <= 0)
            return err_input(e, "%s:%lld: %s is zero or less; correct or remove the row", r->name, (long long)g->line,
                bars_layout_role((column_role)(ROLE_OPEN + i)));
    bars_finding f = judge(g, l, o);
    r->upside_down += f == BARS_HIGH_LOW && g->price[1] < g->price[2];
    if (f != BARS_FINDINGS) {
        bars_rows_tally(r, f, g->line);
        return true;
    }
    if (!grow(r, bytes_expected, e)) return false;
    bar *b = &g->row.bar;
    b->time += g->clock;
    b->open = g->price[0];
    b->high = g->price[1];
    b->low = g->price[2];
    b->close = g->price[3];
    g->row.utc |= l->format == FORMAT_BINANCE;
    g->row.line = (uint64_t)g->line & ((UINT64_C(1) << ROW_LINE_BITS) - 1);
    r->row[r->count++] = g->row;
    return true;
}

bool bars_rows_read(row_groups *all, const char *name, const layout *l, const bars_options *o, err *e) {
    enum { LINES_BETWEEN = 4096 };
    text rest = l->rest, line;
    int64_t lines = l->lines;
    if (o->from) bars_rows_skip(l, o->from, &rest, &lines);
    bool end_only = rest.at > l->rest.at;
    if (!l->has[ROLE_SYMBOL] && !bars_groups_find(all, name, (text){"", 0}, 0, e)) return false;
    for (int64_t number = lines + 1; bars_text_line(&rest, &line); number++) {
        if (number % LINES_BETWEEN == 0 && !stop_go_on(e)) return false;
        if (!line.size) continue;
        reading g = {.line = number, .symbol = {"", 0}};
        if (!read_line(name, l, &g, line, e)) return tell_header(name, l, number, line, e);
        rows *r = bars_groups_find(all, name, g.symbol, number, e);
        if (r) r->report->end_only = end_only;
        if (!r || !add(r, l, o, &g, all->count == 1 ? rest.size : 0, e)) return false;
    }
    return true;
}

#include "data/bars_line.h"

#include "data/bars_number.h"

#include <stdio.h>
#include <string.h>

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

static bool read_stamp(const char *name, const layout *l, bars_line *g, column_role role, text cell, err *e) {
    when_stamp s;
    if (!when_read_as(cell.at, cell.size, l->order, &s) ||
        (role == ROLE_DATE && l->has[ROLE_CLOCK] && s.shape != WHEN_DATE))
        return bad_stamp(name, l, g->line, role, cell, e);
    g->row.bar.time = s.time;
    g->row.utc = s.utc;
    g->row.offset = s.offset;
    return true;
}

static bool read_cell(const char *name, const layout *l, bars_line *g, column_role role, text cell, err *e) {
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

static bool read_cells(const char *name, const layout *l, bars_line *g, text line, err *e) {
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

bool bars_line_is_header(const layout *l, text line) {
    return l->header.size && line.size == l->header.size && memcmp(line.at, l->header.at, line.size) == 0;
}

// A line that cannot be read may be the header once more, as where files are put one behind the other. Returns false.
static bool tell_header(const char *name, const layout *l, int64_t number, text line, err *e) {
    if (!bars_line_is_header(l, line)) return false;
    return err_input(e, "%s:%lld: is a second header; remove the line", name, (long long)number);
}

bool bars_line_read(bars_line *g, const char *name, const layout *l, int64_t number, text line, err *e) {
    *g = (bars_line){.line = number, .symbol = {"", 0}};
    if (!read_cells(name, l, g, line, e)) return tell_header(name, l, number, line, e);
    bar *b = &g->row.bar;
    b->time += g->clock;
    b->open = g->price[0];
    b->high = g->price[1];
    b->low = g->price[2];
    b->close = g->price[3];
    g->row.utc |= l->format == FORMAT_BINANCE;
    g->row.line = (uint64_t)number & ((UINT64_C(1) << ROW_LINE_BITS) - 1);
    return true;
}

bool bars_line_whole(const bars_line *g, const char *name, bool all_missing, err *e) {
    enum { ALL = 15 };
    if (!g->missing || (g->missing == ALL && all_missing)) return true;
    column_role role = ROLE_OPEN;
    while (!(g->missing & 1 << (role - ROLE_OPEN))) role++;
    return err_input(e, "%s:%lld: %s is missing (empty, NaN or null); fill it or remove the row", name,
        (long long)g->line, bars_layout_role(role));
}

bars_finding bars_line_judge(const bars_line *g, const layout *l, bool keep_filled) {
    const double open = g->price[0], high = g->price[1], low = g->price[2], close = g->price[3];
    if (g->missing) return BARS_EMPTY;
    if (open <= 0 || high <= 0 || low <= 0 || close <= 0) return BARS_NOT_POSITIVE;
    if (low > open || low > close || high < open || high < close) return BARS_HIGH_LOW;
    bool filled = l->format == FORMAT_DUKASCOPY && high == low && g->row.bar.volume == 0;
    return filled && !keep_filled ? BARS_FILLED : BARS_FINDINGS;
}

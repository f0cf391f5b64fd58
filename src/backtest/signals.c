#include "backtest/signals.h"

#include "base/stop.h"
#include "data/bars_number.h"
#include "data/bars_text.h"
#include "data/text_file.h"
#include "env/account_terms.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS_MOST = 16 };

typedef enum { TIME, POSITION, STOP, TARGET, COLUMNS } column;

static const char *const titles[COLUMNS] = {"time", "position", "stop", "target"};

typedef struct {
    char separator;
    int cells;
    column of[CELLS_MOST];
} layout;

void signals_done(signals *s) {
    free(s->row);
    *s = (signals){0};
}

static char separator_of(text line) {
    for (const char *c = ",;\t"; *c; c++)
        if (memchr(line.at, *c, line.size)) return *c;
    return ',';
}

static bool add_column(layout *l, const char *name, int64_t line, text cell, bool *has, err *e) {
    char title[32], shown[40];
    column c = TIME;
    bars_text_name(title, sizeof title, cell);
    while (c < COLUMNS && strcmp(title, titles[c]) != 0) c++;
    bars_text_show(shown, sizeof shown, cell);
    if (c == COLUMNS || l->cells == CELLS_MOST)
        return err_input(e, "%s:%lld: column '%s' is unknown; the columns are time, position, stop and target", name,
            (long long)line, shown);
    if (has[c]) return err_input(e, "%s:%lld: column %s is there twice; remove one", name, (long long)line, titles[c]);
    has[c] = true;
    l->of[l->cells++] = c;
    return true;
}

static bool read_header(layout *l, const char *name, int64_t line, text header, err *e) {
    when_stamp stamp;
    bool has[COLUMNS] = {false}, more = true;
    *l = (layout){.separator = separator_of(header)};
    text rest = header, first = bars_text_cell(&rest, l->separator, &more);
    if (when_read(first.at, first.size, &stamp))
        return err_input(
            e, "%s:%lld: the header is missing; write time,position,stop,target above the rows", name, (long long)line);
    for (more = true; more;)
        if (!add_column(l, name, line, bars_text_cell(&header, l->separator, &more), has, e)) return false;
    for (column c = TIME; c <= POSITION; c++)
        if (!has[c])
            return err_input(e, "%s:%lld: has no column %s; the columns are time, position, stop and target", name,
                (long long)line, titles[c]);
    return true;
}

static bool bad_cell(const char *name, int64_t line, column c, text cell, const char *advice, err *e) {
    char shown[40];
    if (!cell.size) return err_input(e, "%s:%lld: %s is empty; %s", name, (long long)line, titles[c], advice);
    return err_input(e, "%s:%lld: %s '%s' cannot be read; %s", name, (long long)line, titles[c],
        bars_text_show(shown, sizeof shown, cell), advice);
}

static bool read_cell(signals_row *r, const char *name, column c, text cell, err *e) {
    int64_t *const to[COLUMNS] = {[POSITION] = &r->lots, [STOP] = &r->stop, [TARGET] = &r->target};
    when_stamp stamp;
    double v;
    if (c == TIME) {
        if (!when_read(cell.at, cell.size, &stamp))
            return bad_cell(name, r->line, c, cell, "write 2024-01-31 or 2024-01-31 09:30:00", e);
        r->time = stamp.time;
        return true;
    }
    number_kind kind = bars_number(cell.at, cell.size, &v);
    if (kind == NUMBER_MISSING && c != POSITION) return true;
    if (kind != NUMBER_OK || !account_fixed(v, to[c]))
        return bad_cell(name, r->line, c, cell, "write a number below 9e10 with a decimal point", e);
    if (c != POSITION && *to[c] <= 0)
        return bad_cell(name, r->line, c, cell, "it is a price above 0; leave the cell empty for none", e);
    return true;
}

static bool read_row(signals_row *r, const char *name, const layout *l, text line, err *e) {
    bool more = true;
    int cells = 0;
    for (; more; cells++) {
        text cell = bars_text_cell(&line, l->separator, &more);
        if (cells < l->cells && !read_cell(r, name, l->of[cells], cell, e)) return false;
    }
    return cells == l->cells || err_input(e, "%s:%lld: has %d column%s, not %d; correct or remove the row", name,
                                    (long long)r->line, cells, cells == 1 ? "" : "s", l->cells);
}

static bool add_row(signals *s, size_t *room, const signals_row *r, err *e) {
    enum { FIRST = 256 };
    char when[32];
    if (s->count && r->time <= s->row[s->count - 1].time)
        return err_input(e, "%s:%lld: time %s is not after that of the row before; sort the signals, one for each bar",
            s->name, (long long)r->line, when_text(when, sizeof when, r->time));
    if ((size_t)s->count == *room) {
        *room = *room ? *room + *room / 2 : FIRST;
        signals_row *more = realloc(s->row, *room * sizeof *more);
        if (!more) return err_run(e, "%s: no memory for %zu signals", s->name, *room);
        s->row = more;
    }
    s->row[s->count++] = *r;
    return true;
}

static bool read_rows(signals *s, text rest, err *e) {
    enum { LINES_BETWEEN = 4096 };
    layout l = {0};
    size_t room = 0;
    text line;
    for (int64_t number = 1; bars_text_line(&rest, &line); number++) {
        if (number % LINES_BETWEEN == 0 && !stop_go_on(e)) return false;
        if (!line.size) continue;
        if (!l.cells) {
            if (!read_header(&l, s->name, number, line, e)) return false;
            continue;
        }
        signals_row r = {.line = number};
        if (!read_row(&r, s->name, &l, line, e) || !add_row(s, &room, &r, e)) return false;
    }
    return s->count || err_input(e, "%s: holds no signals; expected rows of time,position,stop,target", s->name);
}

bool signals_parse(signals *s, const char *name, const char *data, size_t size, err *e) {
    text all = {data, size};
    char *owned = NULL;
    *s = (signals){.name = name};
    bool ok = bars_text_decode(&all, name, &owned, e) && read_rows(s, all, e);
    free(owned);
    if (!ok) signals_done(s);
    return ok;
}

bool signals_read(signals *s, const char *path, err *e) {
    text_file t;
    *s = (signals){0};
    if (!text_file_open(&t, path, SIZE_MAX, e)) return false;
    bool ok = t.arrays ? err_input(e, "%s: holds arrays, not signals; expected text", t.name)
                       : signals_parse(s, t.name, t.data, t.size, e);
    text_file_close(&t);
    return ok;
}

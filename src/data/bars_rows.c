// The one loop over a file's text. It allocates only to grow the array of rows.
#include "data/bars_rows.h"

#include "base/stop.h"
#include "data/bars_line.h"

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

static bool add(rows *r, const layout *l, const bars_options *o, const bars_line *g, size_t bytes_expected, err *e) {
    r->report->rows++;
    if (!bars_line_whole(g, r->name, !o->as_is, e)) return false;
    for (int i = 0; i < 4 && o->as_is; i++)
        if (g->price[i] <= 0)
            return err_input(e, "%s:%lld: %s is zero or less; correct or remove the row", r->name, (long long)g->line,
                bars_layout_role((column_role)(ROLE_OPEN + i)));
    bars_finding f = o->as_is ? BARS_FINDINGS : bars_line_judge(g, l, o->keep_filled);
    r->upside_down += f == BARS_HIGH_LOW && g->price[1] < g->price[2];
    if (f != BARS_FINDINGS) {
        bars_rows_tally(r, f, g->line);
        return true;
    }
    if (!grow(r, bytes_expected, e)) return false;
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
        bars_line g;
        if (!bars_line_read(&g, name, l, number, line, e)) return false;
        rows *r = bars_groups_find(all, name, g.symbol, number, e);
        if (r) r->report->end_only = end_only;
        if (!r || !add(r, l, o, &g, all->count == 1 ? rest.size : 0, e)) return false;
    }
    return true;
}

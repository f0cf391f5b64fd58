// The beginning of a file that is known already: found by halving, not read.
//
// Files in rising order alone are skipped into: those of one instrument whose stamps, at some places, never fall. Rows
// are looked at by their stamps as they stand there, on whatever clock; the caller leaves room for that.
#include "data/bars_rows.h"

#include <string.h>

// The stamp of a line; false where it has none that can be read.
static bool stamp_of(const layout *l, text line, int64_t *time) {
    bool more = true;
    for (int column = 0; more && column < l->columns; column++) {
        text cell = bars_text_cell(&line, l->separator, &more);
        column_role role = (column_role)l->role[column];
        when_stamp s;
        if (role != ROLE_STAMP && role != ROLE_DATE) continue;
        if (!when_read_as(cell.at, cell.size, l->order, &s) || s.utc) return false; // offsets show the clock: all count
        *time = s.time;
        return true;
    }
    return false;
}

// The first line that begins at `at` or behind it; `*begin` is where. False where there is none.
static bool line_from(text all, size_t at, size_t *begin, text *line) {
    if (at) {
        const char *end = memchr(all.at + at - 1, '\n', all.size - at + 1);
        if (!end) return false;
        at = (size_t)(end - all.at) + 1;
    }
    for (text rest = {all.at + at, all.size - at}; bars_text_line(&rest, line);) {
        *begin = at;
        if (line->size) return true;
        at = all.size - rest.size;
    }
    return false;
}

// True where the first row's stamp is before `from` and no later one that is looked at is before another. Rows of
// several instruments may stand one instrument behind the other.
static bool can_skip(const layout *l, text all, int64_t from) {
    enum { PLACES = 256, TAIL = 1024 };
    size_t begin, tail = all.size > TAIL ? all.size - TAIL : 0;
    text line;
    int64_t before, time;
    if (l->has[ROLE_SYMBOL]) return false;
    if (!line_from(all, 0, &begin, &line) || !stamp_of(l, line, &before) || before >= from) return false;
    for (size_t i = 1; i <= PLACES; i++) {
        size_t at = all.size / PLACES * i;
        if (!line_from(all, at < tail ? at : tail, &begin, &line)) break;
        if (!stamp_of(l, line, &time) || time < before) return false;
        before = time;
    }
    return true;
}

// Where the last rows of a text begin: they show their span also where all of them are known.
static size_t last_rows(text all) {
    enum { ROWS = 64 };
    size_t at = all.size;
    for (int rows = 0; at > 0; at--)
        if (all.at[at - 1] == '\n' && at < all.size && ++rows == ROWS) break;
    return at;
}

void bars_rows_skip(const layout *l, int64_t from, text *rest, int64_t *lines) {
    size_t low = 0, high = rest->size, begin; // a line before `from` begins at low, none of those is behind high
    text line;
    if (!can_skip(l, *rest, from)) return;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        int64_t time;
        bool before = line_from(*rest, middle, &begin, &line) && stamp_of(l, line, &time) && time < from;
        if (before && begin < high)
            low = begin;
        else
            high = middle;
    }
    if (low > last_rows(*rest)) low = last_rows(*rest);
    for (const char *at = rest->at; (at = memchr(at, '\n', (size_t)(rest->at + low - at))); at++) ++*lines;
    rest->at += low;
    rest->size -= low;
}

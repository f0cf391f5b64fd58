// Columns that the caller names: "time=Date,close=Price", or by place in a file without a header.
#include "data/bars_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A part of the list: a role's word and a column.
typedef struct {
    text word, column;
    column_role role;
} pair;

static text trimmed(const char *from, const char *to) {
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    return (text){from, (size_t)(to - from)};
}

// Cuts the next pair off; false at the end. A pair without '=' has an empty column.
static bool next_pair(const char **rest, pair *p) {
    if (!**rest) return false;
    const char *end = *rest + strcspn(*rest, ","), *mark = memchr(*rest, '=', (size_t)(end - *rest));
    p->word = trimmed(*rest, mark ? mark : end);
    p->column = mark ? trimmed(mark + 1, end) : (text){end, 0};
    p->role = ROLE_NONE;
    for (column_role r = ROLE_DATE; r < ROLES; r++) {
        const char *word = bars_layout_role(r);
        if (p->word.size == strlen(word) && !memcmp(p->word.at, word, p->word.size)) p->role = r;
    }
    *rest = *end ? end + 1 : end;
    return true;
}

// The place that a number names, from 0; -1 where the text is no number.
static int place_of(text t) {
    int v = 0;
    if (!t.size || t.size > 4) return -1;
    for (size_t i = 0; i < t.size; i++) {
        if (t.at[i] < '0' || t.at[i] > '9') return -1;
        v = v * 10 + t.at[i] - '0';
    }
    return v - 1;
}

bool bars_columns_are_places(const char *columns) {
    pair p;
    bool has[ROLES] = {0};
    while (next_pair(&columns, &p)) {
        if (place_of(p.column) < 0) return false;
        has[p.role] = true;
    }
    return (has[ROLE_CLOCK] || has[ROLE_DATE]) && has[ROLE_OPEN] && has[ROLE_HIGH] && has[ROLE_LOW] && has[ROLE_CLOSE];
}

// A column by its title as it stands, else as names are compared; -1 where there is none.
static int titled(const layout *l, const text *title, text want) {
    char a[64], b[64];
    for (int i = 0; i < l->columns; i++)
        if (title[i].size == want.size && !memcmp(title[i].at, want.at, want.size)) return i;
    bars_text_name(a, sizeof a, want);
    for (int i = 0; *a && i < l->columns; i++) {
        bars_text_name(b, sizeof b, title[i]);
        if (!strcmp(a, b)) return i;
    }
    return -1;
}

static bool no_column(const layout *l, const char *name, const text *title, text want, err *e) {
    char shown[40], all[200] = "", cell[40];
    bars_text_show(shown, sizeof shown, want);
    if (!title)
        return err_input(e, "%s:%lld: has no header, so --columns takes numbers from 1 to %d, not '%s'", name,
            (long long)l->lines, l->columns, shown);
    for (int i = 0; i < l->columns && strlen(all) < sizeof all - 48; i++) {
        bars_text_show(cell, sizeof cell, title[i]);
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", cell);
    }
    return err_input(e, "%s:%lld: has no column '%s', which --columns (data.columns) names; its columns are %s", name,
        (long long)l->lines, shown, all);
}

static bool bad_pair(const char *name, const pair *p, err *e) {
    char word[40];
    bars_text_show(word, sizeof word, p->word);
    if (p->role == ROLE_NONE)
        return err_input(e,
            "%s: '%s' in --columns is no role; roles are time, date, open, high, low, close, volume, spread, symbol, "
            "as in time=Date,close=Price",
            name, word);
    return err_input(e, "%s: --columns gives %s no column; write %s=NAME", name, word, word);
}

static bool given_twice(const layout *l, const bool *taken, column_role role) {
    for (int i = 0; i < l->columns; i++)
        if (taken[i] && l->role[i] == role) return true;
    return false;
}

bool bars_columns_map(layout *l, const char *name, const text *title, const char *columns, err *e) {
    bool given[ROLES] = {0}, taken[COLUMNS_MOST] = {0};
    pair p;
    for (const char *rest = columns; next_pair(&rest, &p);) given[p.role] = true;
    // A time of day needs its date; alone it is the whole stamp.
    column_role time = given[ROLE_DATE] ? ROLE_CLOCK : ROLE_STAMP;
    for (const char *rest = columns; next_pair(&rest, &p);) {
        if (p.role == ROLE_NONE || !p.column.size) return bad_pair(name, &p, e);
        column_role role = p.role == ROLE_CLOCK ? time : p.role;
        int at = title ? titled(l, title, p.column) : place_of(p.column);
        if (at < 0 || at >= l->columns) return no_column(l, name, title, p.column, e);
        char shown[40];
        if (taken[at])
            return err_input(e, "%s: --columns names '%s' twice; a column has one role", name,
                bars_text_show(shown, sizeof shown, p.column));
        if (given_twice(l, taken, role))
            return err_input(e, "%s: --columns gives %s two columns; a role has one", name, bars_layout_role(role));
        taken[at] = true;
        for (int i = 0; i < l->columns; i++)
            if (!taken[i] && (l->role[i] == role || (role <= ROLE_DATE && l->role[i] <= ROLE_CLOCK)))
                l->role[i] = ROLE_NONE;
        l->role[at] = (unsigned char)role;
    }
    memset(l->has, 0, sizeof l->has);
    for (int i = 0; i < l->columns; i++) l->has[l->role[i]] = true;
    return true;
}

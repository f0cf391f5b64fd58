// Rows apart by symbol, found by hashing: files of many symbols often change it with every row.
#include "data/bars_rows.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4 * BARS_SYMBOLS_MOST, FIRST_ROOM = 4 };

bool bars_symbol_ok(text s) {
    if (s.size >= BARS_SYMBOL_ROOM) return false;
    for (size_t i = 0; i < s.size; i++) {
        char c = s.at[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr("_-.#/=^", c))) return false;
    }
    return true;
}

static bool is(const rows *r, text symbol) {
    return !r->symbol[symbol.size] && !memcmp(r->symbol, symbol.at, symbol.size);
}

// Where the hash table has the symbol, or where it would stand.
static size_t slot_of(const row_groups *g, text symbol) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < symbol.size; i++) hash = (hash ^ (unsigned char)symbol.at[i]) * 16777619u;
    size_t at = hash % SLOTS;
    while (g->slot[at] && !is(&g->item[g->slot[at] - 1], symbol)) at = (at + 1) % SLOTS;
    return at;
}

static rows *append(row_groups *g, const char *name, text symbol, err *e) {
    if (g->count == g->room) {
        int room = g->room ? 2 * g->room : FIRST_ROOM;
        rows *more = realloc(g->item, (size_t)room * sizeof *more);
        if (more) {
            g->item = more;
            g->room = room;
        }
    }
    bars_report *report = g->count < g->room ? calloc(1, sizeof *report) : NULL;
    if (!report) {
        err_run(e, "%s: no memory for its symbols", name);
        return NULL;
    }
    rows *r = &g->item[g->count++];
    *r = (rows){.report = report, .name = name};
    memcpy(r->symbol, symbol.at, symbol.size);
    return r;
}

rows *bars_groups_find(row_groups *g, const char *name, text symbol, int64_t line, err *e) {
    if (g->count && symbol.size < BARS_SYMBOL_ROOM && is(&g->item[g->last], symbol)) return &g->item[g->last];
    char shown[48];
    if (!bars_symbol_ok(symbol)) {
        err_input(e, "%s:%lld: symbol '%s' is not a name of at most %d letters, digits and _ - . # / = ^; rename it",
            name, (long long)line, bars_text_show(shown, sizeof shown, symbol), BARS_SYMBOL_ROOM - 1);
        return NULL;
    }
    if (!g->slot && !(g->slot = calloc(SLOTS, sizeof *g->slot))) {
        err_run(e, "%s: no memory for its symbols", name);
        return NULL;
    }
    size_t at = slot_of(g, symbol);
    if (!g->slot[at]) {
        if (g->count == BARS_SYMBOLS_MOST) {
            err_input(e, "%s:%lld: symbol '%s' is one too many; a file may have %d", name, (long long)line,
                bars_text_show(shown, sizeof shown, symbol), BARS_SYMBOLS_MOST);
            return NULL;
        }
        if (!append(g, name, symbol, e)) return NULL;
        g->slot[at] = (uint16_t)g->count;
    }
    g->last = g->slot[at] - 1;
    return &g->item[g->last];
}

static int by_symbol(const void *a, const void *b) {
    return strcmp(((const rows *)a)->symbol, ((const rows *)b)->symbol);
}

void bars_groups_sort(row_groups *g) {
    qsort(g->item, (size_t)g->count, sizeof *g->item, by_symbol);
}

void bars_groups_done(row_groups *g) {
    for (int i = 0; i < g->count; i++) {
        free(g->item[i].row);
        free(g->item[i].report);
    }
    free(g->item);
    free(g->slot);
    *g = (row_groups){0};
}

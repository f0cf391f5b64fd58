#include "data/bars.h"

#include "data/bars_rows.h"
#include "data/text_file.h"

#include <stdlib.h>
#include <string.h>

void bars_done(bars *b) {
    free(b->bar);
    *b = (bars){0};
}

// The zone of the file's clock, and what the report says of it.
static when_zone *zone_of(bars_report *p, const layout *l, const bars_options *o, const char *name, err *e) {
    const char *tz = bars_layout_zone(l, o->tz);
    p->zone_assumed = !(o->tz && *o->tz) && !l->utc;
    bars_text_show(p->zone, sizeof p->zone, (text){tz, strlen(tz)});
    err why = {0};
    when_zone *z = when_zone_new(tz, &why);
    if (!z && why.kind == ERR_INPUT) err_input(e, "%s: %s", name, why.text);
    if (!z && why.kind != ERR_INPUT) err_run(e, "%s: %s", name, why.text);
    return z;
}

// Refuses rows most of which have a high or low that cannot be: the columns are swapped, not the rows wrong.
static bool upright(const rows *r, const layout *l, err *e) {
    const bars_tally *wrong = &r->report->tally[BARS_HIGH_LOW];
    int64_t priced = r->report->rows - r->report->tally[BARS_EMPTY].count;
    if (2 * wrong->count <= priced) return true;
    if (2 * r->upside_down <= priced)
        return err_input(e,
            "%s:%lld: high or low does not enclose open and close in %lld of %lld rows, this is the first; the columns "
            "look swapped: say which is which with --columns (data.columns)",
            r->name, (long long)wrong->line, (long long)wrong->count, (long long)r->report->rows);
    char high[40], low[40];
    bars_text_show(high, sizeof high, l->title[ROLE_HIGH]);
    bars_text_show(low, sizeof low, l->title[ROLE_LOW]);
    for (int i = 0; i < l->columns && !l->title[ROLE_HIGH].size; i++) {
        if (l->role[i] == ROLE_HIGH) snprintf(high, sizeof high, "%d", i + 1);
        if (l->role[i] == ROLE_LOW) snprintf(low, sizeof low, "%d", i + 1);
    }
    return err_input(e,
        "%s:%lld: high is below low in %lld of %lld rows, this is the first; the columns look swapped: --columns "
        "high=%s,low=%s",
        r->name, (long long)wrong->line, (long long)r->upside_down, (long long)r->report->rows, low, high);
}

static bool enough(const rows *r, const bars_options *o, err *e) {
    const char *least = o->span_count ? "at least one bar is needed" : "at least two bars are needed";
    if (r->count >= (o->span_count ? 1 : 2)) return true;
    if (*r->symbol)
        return err_input(e, "%s: only %zu of %lld rows of %s can be used; %s, or no row of it", r->name, r->count,
            (long long)r->report->rows, r->symbol, least);
    return err_input(
        e, "%s: only %zu of %lld rows can be used; %s", r->name, r->count, (long long)r->report->rows, least);
}

// Turns the rows' memory into an array of bars.
static void settle(bars *b, rows *r) {
    CHECK(r->count, "no rows to settle");
    for (size_t i = 0; i < r->count; i++) memmove((char *)r->row + i * sizeof(bar), &r->row[i].bar, sizeof(bar));
    bar *less = realloc(r->row, r->count * sizeof(bar));
    b->bar = less ? less : (bar *)(void *)r->row;
    b->count = (int64_t)r->count;
    b->report = *r->report;
    memcpy(b->symbol, r->symbol, sizeof b->symbol);
    r->row = NULL;
}

// False where more than one row of twenty had prices that cannot be: what is left would teach wrong hours.
static bool priced(const rows *r, unsigned force, err *e) {
    enum { ROWS_LEAST = 100 };
    const bars_tally *zero = &r->report->tally[BARS_NOT_POSITIVE], *crossed = &r->report->tally[BARS_HIGH_LOW];
    int64_t lost = zero->count + crossed->count;
    if (r->report->rows < ROWS_LEAST || 20 * lost <= r->report->rows) return true;
    return bars_force_refuse(force, BARS_FORCE_THIN, &r->report->forced, e,
        "%s:%lld: %s, the first of %lld such rows of %lld; export it anew", r->name,
        (long long)(zero->count ? zero->line : crossed->line),
        zero->count ? "a price is zero or less" : "high or low does not enclose open and close", (long long)lost,
        (long long)r->report->rows);
}

// Rows of one symbol to bars, as they are.
static bool finish_as_is(bars *b, rows *r, const layout *l, const when_zone *z, const bars_options *o, err *e) {
    if (!enough(r, o, e)) return false;
    bars_rows_order(r, z, false);
    for (size_t i = 0; i < r->count; i++) r->report->has_spread |= r->row[i].bar.spread > 0;
    r->report->first = r->row[0].bar.time;
    r->report->last = r->row[r->count - 1].bar.time;
    b->format = bars_layout_format(l->format);
    settle(b, r);
    return true;
}

// Rows of one symbol to bars.
static bool finish(bars *b, rows *r, const layout *l, const when_zone *z, const bars_options *o, err *e) {
    when_zone *own = NULL;
    joined_rows joined = {0};
    if (!upright(r, l, e) || !priced(r, o->force, e) || !enough(r, o, e)) return false;
    if (l->order_line) r->report->date_order = l->order;
    r->report->date_order_line = l->order_line;
    bars_rows_order(r, z, true);
    bool ok = enough(r, o, e) && bars_rows_frame(r, o, &b->span, e) && enough(r, o, e) &&
              bars_rows_end(r, l, z, o, b->span, &own, e) && bars_rows_join(&joined, r, b->span, o, e) &&
              bars_rows_prices(r, &joined, b->span, o->force, e) &&
              bars_rows_survey(r, &joined, l, own ? own : z, b->span, o, e);
    bars_rows_join_done(&joined, r);
    when_zone_free(own);
    if (!ok) return false;
    b->format = bars_layout_format(l->format);
    settle(b, r);
    return true;
}

// Refuses a file of several symbols, with their names as far as they fit.
static bool refuse_several(const row_groups *g, const char *name, err *e) {
    enum { SHOWN = 8 };
    char all[SHOWN * (BARS_SYMBOL_ROOM + 2)] = "";
    size_t used = 0;
    for (int i = 0; i < g->count && i < SHOWN; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", g->item[i].symbol);
    return err_input(e, "%s: holds %d instruments (%s%s) where one is expected; keep the rows of one symbol", name,
        g->count, all, g->count > SHOWN ? ", ..." : "");
}

static bool finish_all(bars_list *all, row_groups *g, const layout *l, const when_zone *z, const bars_report *zoned,
    const bars_options *o, err *e) {
    all->item = calloc((size_t)g->count, sizeof *all->item);
    if (!all->item) return err_run(e, "%s: no memory for its %d symbols", g->item[0].name, g->count);
    for (; all->count < g->count; all->count++) {
        rows *r = &g->item[all->count];
        r->report->zone_assumed = zoned->zone_assumed;
        memcpy(r->report->zone, zoned->zone, sizeof zoned->zone);
        if (!(o->as_is ? finish_as_is : finish)(&all->item[all->count], r, l, z, o, e)) return false;
    }
    return true;
}

static bool parse(bars_list *all, const char *name, text data, const bars_options *o, bool one, err *e) {
    static const bars_options plain = {0};
    if (!o) o = &plain;
    *all = (bars_list){0};
    row_groups groups = {0};
    bars_report zoned = {0};
    char *owned = NULL;
    when_zone *z = NULL;
    layout *l = malloc(sizeof *l);
    if (!l) return err_run(e, "%s: no memory to read it", name);
    bool ok = bars_text_decode(&data, name, &owned, e) && bars_layout_find(l, name, data, o, e);
    ok = ok && (z = zone_of(&zoned, l, o, name, e)) && bars_rows_read(&groups, name, l, o, e);
    bool empty = ok && (!groups.count || !groups.item[0].report->rows), may_be = !one && o->span_count;
    if (empty && !may_be) ok = err_input(e, "%s: has a header but no rows; expected bars", name);
    if (ok) bars_groups_sort(&groups);
    if (ok && one && groups.count > 1) ok = refuse_several(&groups, name, e);
    ok = ok && (empty || finish_all(all, &groups, l, z, &zoned, o, e));
    bars_groups_done(&groups);
    when_zone_free(z);
    free(l);
    free(owned);
    if (!ok) bars_list_done(all);
    return ok;
}

static bool read_file(bars_list *all, const char *path, const bars_options *o, bool one, err *e) {
    *all = (bars_list){0};
    text_file t;
    if (!text_file_open(&t, path, SIZE_MAX, e)) return false;
    bars_options with = o ? *o : (bars_options){0};
    if (!with.written) with.written = t.written;
    bool ok = t.arrays ? err_input(e, "%s: holds arrays, not bars; import it by itself", t.name)
                       : parse(all, t.name, (text){t.data, t.size}, &with, one, e);
    text_file_close(&t);
    return ok;
}

// Takes the one item out of a list.
static bool take_one(bars *b, bars_list *all, bool ok) {
    *b = (bars){0};
    if (ok) {
        CHECK(all->count == 1 && all->item, "%d instruments where one is expected", all->count);
        *b = all->item[0];
    }
    free(all->item);
    return ok;
}

bool bars_parse_list(bars_list *l, const char *name, const char *data, size_t size, const bars_options *o, err *e) {
    return parse(l, name, (text){data, size}, o, false, e);
}

bool bars_read_list(bars_list *l, const char *path, const bars_options *o, err *e) {
    return read_file(l, path, o, false, e);
}

bool bars_parse(bars *b, const char *name, const char *data, size_t size, const bars_options *o, err *e) {
    bars_list all;
    bool ok = parse(&all, name, (text){data, size}, o, true, e);
    return take_one(b, &all, ok);
}

bool bars_read(bars *b, const char *path, const bars_options *o, err *e) {
    bars_list all;
    bool ok = read_file(&all, path, o, true, e);
    return take_one(b, &all, ok);
}

void bars_list_done(bars_list *l) {
    for (int i = 0; i < l->count; i++) bars_done(&l->item[i]);
    free(l->item);
    *l = (bars_list){0};
}

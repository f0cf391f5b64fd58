#include "data/bars.h"

#include "base/file.h"
#include "data/bars_rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void bars_done(bars *b) {
    free(b->bar);
    *b = (bars){0};
}

// The zone of the file's clock, and what the report says of it.
static when_zone *zone_of(bars_report *p, const layout *l, const bars_options *o, const char *name, err *e) {
    const char *tz = o->tz && *o->tz ? o->tz : NULL;
    p->zone_assumed = !tz && !l->utc;
    if (l->format == FORMAT_BINANCE) tz = "UTC";
    if (!tz) tz = l->format == FORMAT_HISTDATA ? "EST" : "UTC";
    bars_text_show(p->zone, sizeof p->zone, (text){tz, strlen(tz)});
    err why = {0};
    when_zone *z = when_zone_new(tz, &why);
    if (!z && why.kind == ERR_INPUT) err_input(e, "%s: %s", name, why.text);
    if (!z && why.kind != ERR_INPUT) err_run(e, "%s: %s", name, why.text);
    return z;
}

static void note_own_offsets(const rows *r, const layout *l) {
    if (l->format == FORMAT_BINANCE) return;
    for (size_t i = 0; i < r->count; i++)
        if (!r->row[i].utc) return;
    strcpy(r->report->zone, "as stamped");
    r->report->zone_assumed = false;
}

static bool enough(const rows *r, err *e) {
    if (r->count >= 2) return true;
    if (!r->report->rows) return err_input(e, "%s: has a header but no rows; expected bars", r->name);
    return err_input(e, "%s: only %zu of %lld rows can be used; at least two bars are needed", r->name, r->count,
        (long long)r->report->rows);
}

static void end_bars(rows *r, const when_zone *z, int64_t span) {
    size_t hint = 0;
    for (size_t i = 0; i < r->count; i++) {
        row *w = &r->row[i];
        w->bar.end = w->utc ? w->bar.time + span : when_bar_end(z, w->bar.time, span, &hint);
    }
}

// Turns the rows' memory into an array of bars.
static void settle(bars *b, rows *r) {
    CHECK(r->count, "no rows to settle");
    for (size_t i = 0; i < r->count; i++) memmove((char *)r->row + i * sizeof(bar), &r->row[i].bar, sizeof(bar));
    bar *less = realloc(r->row, r->count * sizeof(bar));
    b->bar = less ? less : (bar *)(void *)r->row;
    b->count = (int64_t)r->count;
    r->row = NULL;
}

bool bars_parse(bars *b, const char *name, const char *data, size_t size, const bars_options *o, err *e) {
    static const bars_options plain = {0};
    if (!o) o = &plain;
    *b = (bars){0};
    rows r = {.report = &b->report, .name = name};
    text all = {data, size};
    char *owned = NULL;
    when_zone *z = NULL;
    layout *l = malloc(sizeof *l);
    if (!l) return err_run(e, "%s: no memory to read it", name);
    bool ok = bars_text_decode(&all, name, &owned, e);
    ok = ok && bars_layout_find(l, name, all, e);
    ok = ok && (z = zone_of(&b->report, l, o, name, e)) != NULL;
    ok = ok && bars_rows_read(&r, l, o, e) && enough(&r, e);
    if (ok) {
        note_own_offsets(&r, l);
        bars_rows_order(&r, z);
    }
    ok = ok && enough(&r, e) && bars_rows_frame(&r, o->keep_coarse, &b->span, e);
    if (ok) end_bars(&r, z, b->span);
    ok = ok && bars_rows_survey(&r, l, z, b->span, o, e);
    if (ok) {
        b->format = bars_layout_format(l->format);
        settle(b, &r);
    }
    free(r.row);
    free(l);
    when_zone_free(z);
    free(owned);
    if (!ok) bars_done(b);
    return ok;
}

bool bars_read(bars *b, const char *path, const bars_options *o, err *e) {
    *b = (bars){0};
    file_map m;
    if (!file_map_open(&m, path, e)) return false;
    bars_options with = o ? *o : (bars_options){0};
    struct stat st;
    if (!with.written && !stat(path, &st)) with.written = (int64_t)st.st_mtime;
    bool ok = bars_parse(b, path, (const char *)m.data, m.size, &with, e);
    file_map_close(&m);
    return ok;
}

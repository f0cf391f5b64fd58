// When bars end: by the clock of the file's zone, or by the clock that stamps with offsets of their own were read from.
//
// An offset says what the clock showed at the open, not when it changes. Where a file shows several, its clock is the
// given zone or the first known one that agrees with every stamp. Where it shows one, its clock is the given zone if
// that agrees, unless the offset is 0, which is UTC's own; else a clock that never changes.
#include "data/bars_rows.h"

#include <stdio.h>
#include <string.h>

static bool agrees(const rows *r, const when_zone *z) {
    size_t hint = 0;
    for (size_t i = 0; i < r->count; i++) {
        const row *w = &r->row[i];
        if (w->utc && when_local(z, w->bar.time, &hint) - w->bar.time != w->offset * 60) return false;
    }
    return true;
}

static when_zone *zone_that_agrees(const rows *r, const char *tz, bool given_only, const char **name) {
    const char *const known[] = {tz, "America/New_York", "Europe/London", "Europe/Berlin", "mt5", "Europe/Athens",
        "America/Chicago", "America/Los_Angeles", "Australia/Sydney", "Pacific/Auckland", "America/Sao_Paulo"};
    for (size_t i = 0; i < (given_only ? 1 : sizeof known / sizeof *known); i++) {
        when_zone *z = known[i] && *known[i] ? when_zone_new(known[i], NULL) : NULL;
        *name = known[i];
        if (z && agrees(r, z)) return z;
        when_zone_free(z);
    }
    return NULL;
}

// A clock that never changes.
static when_zone *fixed(int minutes, err *e) {
    char name[16];
    int size = minutes < 0 ? -minutes : minutes;
    snprintf(name, sizeof name, "%c%02d:%02d", minutes < 0 ? '-' : '+', size / 60 % 16, size % 60);
    return when_zone_new(name, e);
}

static bool refuse_offsets(const rows *r, int a, int b, err *e) {
    return err_input(e,
        "%s: its stamps show offsets of %+.3g h and %+.3g h, so its clock changes; name its zone with --tz or data.tz, "
        "so that the end of each bar is known",
        r->name, a / 60.0, b / 60.0);
}

bool bars_rows_end(
    rows *r, const layout *l, const when_zone *z, const bars_options *o, int64_t span, when_zone **own, err *e) {
    const row *first = NULL, *other = NULL;
    size_t stamped = 0, hint = 0, fixed_hint = 0;
    *own = NULL;
    for (size_t i = 0; i < r->count; i++) {
        if (!r->row[i].utc) continue;
        stamped++;
        if (!first) first = &r->row[i];
        if (!other && r->row[i].offset != first->offset) other = &r->row[i];
    }
    const char *name = NULL;
    if (other || (first && first->offset)) *own = zone_that_agrees(r, o->tz, !other, &name);
    if (other && !*own && span > WHEN_HOUR) return refuse_offsets(r, first->offset, other->offset, e);
    if (stamped == r->count && l->format != FORMAT_BINANCE) {
        snprintf(r->report->zone, sizeof r->report->zone, *own ? "as stamped (%.56s)" : "as stamped", name);
        r->report->zone_assumed = false;
    }
    when_zone *same = first && !*own ? fixed(first->offset, e) : NULL;
    if (first && !*own && !same) return false;
    for (size_t i = 0; i < r->count; i++) {
        row *w = &r->row[i];
        if (w->utc && same)
            w->bar.end = when_bar_end(same, w->bar.time, span, &fixed_hint);
        else
            w->bar.end = when_bar_end(*own ? *own : z, w->bar.time, span, &hint);
    }
    when_zone_free(same);
    return true;
}

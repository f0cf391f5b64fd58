#include "data/ruler.h"

#include <stdlib.h>

bool ruler_init(ruler *r, const dataset *d, err *e) {
    CHECK(d->samples > 0, "a ruler of no samples");
    *r = (ruler){.d = d, .first = malloc((size_t)(d->samples + 1) * sizeof *r->first)};
    if (!r->first) return err_run(e, "out of memory for %lld moments", (long long)d->samples);
    for (int64_t i = 0; i < d->samples; i++)
        if (!i || !d->time || d->time[i] != d->time[i - 1]) r->first[r->moments++] = i;
    r->first[r->moments] = d->samples;
    return true;
}

void ruler_done(ruler *r) {
    free(r->first);
    *r = (ruler){0};
}

edge ruler_edge(const ruler *r, int64_t moment) {
    const int64_t *time = r->d->time;
    if (moment < 0) moment = 0;
    if (moment < r->moments) return (edge){moment, time ? time[r->first[moment]] : 0};
    return (edge){r->moments, time ? time[r->d->samples - 1] + 1 : 0};
}

// The first moment at or after a time, or whose first sample is this one or a later one.
static int64_t search(const ruler *r, int64_t value, bool by_time) {
    int64_t low = 0, high = r->moments;
    while (low < high) {
        int64_t middle = (low + high) / 2, at = r->first[middle];
        if ((by_time ? r->d->time[at] : at) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

edge ruler_edge_at(const ruler *r, int64_t time) {
    return (edge){search(r, time, true), time};
}

edge ruler_edge_of(const ruler *r, int64_t sample) {
    return ruler_edge(r, search(r, sample, false));
}

edge ruler_move(const ruler *r, edge from, extent by, int64_t times) {
    switch (by.unit) {
    case EXTENT_MOMENTS: return by.count && times ? ruler_edge(r, from.moment + by.count * times) : from;
    case EXTENT_SECONDS: return ruler_edge_at(r, from.time + by.count * times);
    case EXTENT_MONTHS: return ruler_edge_at(r, extent_months_on(from.time, by.count * times));
    case EXTENT_DATE: break;
    }
    CHECK(false, "a place moved by a date");
    return from;
}

span ruler_span(const ruler *r, edge from, edge to) {
    int64_t first = r->first[from.moment], last = r->first[to.moment];
    return (span){first, last > first ? last - first : 0};
}

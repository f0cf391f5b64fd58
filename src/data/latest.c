#include "data/latest.h"

#include "data/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A sample of the view: its place in the dataset.
typedef struct {
    int64_t time, series, sample;
} pick;

static int by_time(const void *a, const void *b) {
    const pick *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->series < y->series ? -1 : x->series > y->series;
}

// The samples among the last bars of their series, counted; written where `to` is not NULL.
static int64_t pick_samples(const dataset *d, int64_t bars, pick *to) {
    const int64_t *start = d->stream[0].start;
    int64_t n = 0;
    for (int64_t k = 0; k < dataset_all(d); k++) {
        int64_t series = d->panel ? dataset_panel_of(d, k) : 0;
        if (d->stream[0].row[k] < start[series + 1] - bars) continue;
        if (to) to[n] = (pick){d->time[k], series, k};
        n++;
    }
    return n;
}

// The same in order; NULL where memory is short.
static pick *choose(const dataset *d, int64_t bars, int64_t *count) {
    int64_t n = pick_samples(d, bars, NULL);
    pick *all = malloc((size_t)(n + 1) * sizeof *all);
    if (!all) return NULL;
    *count = pick_samples(d, bars, all);
    qsort(all, (size_t)*count, sizeof *all, by_time);
    return all;
}

static size_t measure(const dataset *d, int64_t n) {
    size_t bytes = 2 * (size_t)d->streams * dataset_room(n, sizeof(int32_t)) + dataset_room(n, 1);
    for (int k = 0; k < d->vector.parts; k++)
        bytes += dataset_room(n * d->vector.part[k].width, column_bytes(d->vector.part[k].type));
    bytes += dataset_room(n, sizeof(int32_t)) + dataset_room(n * d->target_width, sizeof(float));
    return bytes + dataset_room(n, sizeof(int64_t)) + dataset_room(n, sizeof(float));
}

static void take_stream(dataset *to, const dataset *from, int i, const pick *p, size_t *at) {
    const stream *s = &from->stream[i];
    int32_t *row = dataset_take(to, at, to->samples, sizeof *row);
    int32_t *first = dataset_take(to, at, to->samples, sizeof *first);
    for (int64_t k = 0; k < to->samples; k++) {
        row[k] = s->row[p[k].sample];
        first[k] = s->first[p[k].sample];
    }
    to->stream[i] = *s;
    to->stream[i].row = row;
    to->stream[i].first = first;
}

static void take_vector(dataset *to, const dataset *from, const pick *p, size_t *at) {
    const table *v = &from->vector;
    to->vector = (table){.rows = to->samples, .columns = v->columns};
    for (int i = 0; i < v->parts; i++) {
        size_t bytes = (size_t)v->part[i].width * column_bytes(v->part[i].type);
        char *data = dataset_take(to, at, to->samples, bytes);
        for (int64_t k = 0; k < to->samples; k++)
            memcpy(data + (size_t)k * bytes, (const char *)v->part[i].data + (size_t)p[k].sample * bytes, bytes);
        table_add(&to->vector, v->part[i].type, v->part[i].width, data);
    }
}

static void take_lists(dataset *to, const dataset *from, const pick *p, size_t *at) {
    int64_t width = from->target_width, n = to->samples;
    uint8_t *known = dataset_take(to, at, n, 1);
    int32_t *label = dataset_take(to, at, n, sizeof *label);
    float *target = dataset_take(to, at, n * width, sizeof *target);
    int64_t *time = dataset_take(to, at, n, sizeof *time);
    float *price = dataset_take(to, at, n, sizeof *price);
    for (int64_t k = 0; k < n; k++) {
        int64_t sample = p[k].sample;
        known[k] = sample < from->samples;
        time[k] = from->time[sample];
        price[k] = from->price[sample];
        if (!known[k]) continue;
        if (from->label) label[k] = from->label[sample];
        if (from->target) memcpy(target + k * width, from->target + sample * width, (size_t)width * sizeof *target);
    }
    to->known = known;
    to->label = from->label ? label : NULL;
    to->target = from->target ? target : NULL;
    to->time = time;
    to->price = price;
}

static dataset *view(dataset *from, const pick *p, int64_t n, err *e) {
    size_t at = 0;
    dataset *d = dataset_view(from, true, measure(from, n), e);
    if (!d) return NULL;
    d->samples = n;
    d->unlabelled = 0;
    d->end = NULL;
    d->best = NULL;
    for (int i = 0; i < d->streams; i++) take_stream(d, from, i, p, &at);
    take_vector(d, from, p, &at);
    take_lists(d, from, p, &at);
    return d;
}

dataset *latest_new(dataset *from, int64_t bars, err *e) {
    int64_t n = 0;
    dataset *d = NULL;
    CHECK(bars > 0, "the newest %" PRId64 " bars", bars);
    bool kept = from->streams && from->stream[0].bars.count && from->time && from->price;
    pick *p = kept ? choose(from, bars, &n) : NULL;
    if (!kept)
        err_input(e, "%s: keeps no bars, so none is its newest; %s", from->name,
            from->held                             ? "a panel of series is forecast with --part future"
            : strcmp(from->name, "synthetic") == 0 ? "the synthetic market has samples alone, answer them with --part"
                                                   : "import bars anew, older versions did not keep them");
    if (kept && !p) err_run(e, "no memory for the newest bars");
    if (p && !n) err_input(e, "%s: none of its newest bars is a sample; import all bars anew", from->name);
    if (n)
        d = view(from, p, n, e);
    else
        dataset_free(from);
    free(p);
    return d;
}

bool latest_is_late(const dataset *d, int64_t series, int stream, char *text, size_t n) {
    const bar_table *fine = &d->stream[0].bars, *t = &d->stream[stream].bars;
    if (!stream || !fine->count || !t->count) return false;
    int64_t last = fine->start[series + 1] - 1, row = t->start[series + 1] - 1, span = d->span[stream];
    if (last < fine->start[series] || row < t->start[series]) return false;
    int64_t now = fine->time[2 * last + 1], closed = t->time[2 * row + 1];
    // A month may be longer than its span says, and a day over a clock change.
    int64_t longest = span + (span < WHEN_DAY ? 0 : span < WHEN_MONTH ? WHEN_HOUR : 2 * WHEN_DAY);
    int64_t next = dataset_bar_from(fine, series, closed);
    if (next > last || now - fine->time[2 * next] < longest) return false;
    char when[32], behind[32];
    snprintf(text, n, "%s%s%s: newest bar closed %s UTC, %s before the newest %s bar",
        d->panel ? d->panel_names[series] : "", d->panel ? " " : "", d->stream[stream].name,
        when_moment_text(when, sizeof when, closed), when_span_text(behind, sizeof behind, now - closed),
        d->stream[0].name);
    return true;
}

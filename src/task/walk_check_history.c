// Histories with another future: bars up to a moment as they were, and behind it none or others.
#include "base/rng.h"
#include "data/append.h"
#include "data/frame.h"
#include "task/source.h"
#include "task/walk_check_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool history_read(history *h, const config *c, const settings *s, err *e) {
    *h = (history){.o = s->build};
    if (!source_bars(c, s, &h->files, e)) return false;
    h->from = h->files.build;
    return true;
}

// Bars of one instrument and frame of a set.
static bar *copy_bars(const bar_table *t, int64_t series, int64_t *count) {
    int64_t from = t->start[series];
    *count = t->start[series + 1] - from;
    bar *all = malloc((size_t)(*count + 1) * sizeof *all);
    for (int64_t r = 0; all && r < *count; r++) all[r] = dataset_bar(t, from + r);
    return all;
}

bool history_of_set(history *h, const dataset *set, err *e) {
    bars_options unused = {0};
    int frames = set->streams, series = (int)dataset_series(set);
    const json_t *all = json_object_get(set->about, "sources");
    *h = (history){0};
    if (!append_options(set, &h->o, &unused, e)) return false;
    h->series = calloc((size_t)series, sizeof *h->series);
    h->bars = calloc((size_t)(series * frames), sizeof *h->bars);
    bool ok = h->series && h->bars;
    h->from = (build_source){.frames = frames, .series = series, .of = h->series};
    for (int i = 0; i < frames; i++) {
        const table *t = &set->stream[i].series;
        h->from.frame[i] = (frame_spec){set->stream[i].name, set->span[i], t->columns, (int)t->width};
    }
    for (int at = 0; ok && at < series * frames; at++) {
        int k = at / frames, i = at % frames;
        build_bars_of *to = &h->series[k].frame[i];
        h->series[k].symbol = set->panel ? set->panel_names[k] : "";
        h->bars[at] = copy_bars(&set->stream[i].bars, k, &to->count);
        ok = h->bars[at] != NULL;
        to->bar = h->bars[at];
        to->file = set->name;
        to->made = json_is_true(json_object_get(json_array_get(all, (size_t)at), "made"));
    }
    if (ok) return true;
    history_done(h);
    return err_run(e, "%s: no memory for a copy of its bars", set->name);
}

void history_done(history *h) {
    for (int i = 0; h->bars && i < h->from.series * h->from.frames; i++) free(h->bars[i]);
    free(h->bars);
    free(h->series);
    free(h->since);
    if (h->files.file) sources_done(&h->files);
    *h = (history){0};
}

void history_begin(history *h, const dataset *whole) {
    h->since = calloc((size_t)h->from.series, sizeof *h->since);
    NEED(h->since, "out of memory for %d instruments", h->from.series);
    for (int k = 0; k < h->from.series; k++) h->since[k] = INT64_MAX;
    for (int64_t i = 0; i < dataset_all(whole); i++) {
        int64_t *to = &h->since[whole->panel ? dataset_panel_of(whole, i) : 0];
        if (whole->time[i] < *to) *to = whole->time[i];
    }
}

dataset *history_whole(const history *h, err *e) {
    return build_bars(&h->from, &h->o, NULL, NULL, e);
}

// Another bar at the same time: far above or below, of another shape, volume and spread. The distance is beyond any
// band or barrier that labels are made with, so that a label which sees the bar becomes UP or DOWN.
static void alter(bar *b, future f) {
    static const double distance = 3, noise = 0.2; // log returns
    rng_block r = rng_philox(0, (uint32_t)b->time, (uint32_t)(b->time >> 32), (uint32_t)RNG_CHECK << 16, (uint32_t)f);
    double unit[4];
    for (int i = 0; i < 4; i++) unit[i] = (double)rng_unit(r.v[i]);
    b->open *= exp((f == FUTURE_UP ? distance : -distance) + noise * (unit[0] - 0.5));
    b->close = b->open * exp(noise * (unit[1] - 0.5));
    b->high = fmax(b->open, b->close) * (1 + noise * unit[2]);
    b->low = fmin(b->open, b->close) * (1 - noise * unit[3]);
    b->volume = (b->volume + 1) * (1 + unit[2]);
    b->spread = (b->spread + 1) * (1 + unit[3]);
}

// Copies bars with another future. A bar that is open at t belongs to the future.
static bar *change(const build_bars_of *from, int64_t t, future f, int64_t *count) {
    bar *all = malloc((size_t)(from->count + 1) * sizeof *all);
    int64_t n = 0;
    for (int64_t i = 0; all && i < from->count; i++) {
        bool past = from->bar[i].end <= t;
        if (!past && f == FUTURE_CUT) continue;
        all[n] = from->bar[i];
        if (!past) alter(&all[n], f);
        n++;
    }
    *count = n;
    return all;
}

// One instrument with another future; coarser bars that were made of finer ones are made of them anew.
static bool change_series(const history *h, const build_series *from, int64_t t, future f, build_series *to, err *e) {
    to->symbol = from->symbol;
    for (int i = 0; i < h->from.frames; i++) {
        const build_bars_of *x = &from->frame[i];
        build_bars_of *y = &to->frame[i];
        bar *made = NULL;
        y->file = x->file;
        y->made = x->made;
        frame_source fine = {to->frame[0].bar, to->frame[0].count, h->from.frame[0].span, false};
        if (x->made && !frame_make(&fine, h->from.frame[i].span, x->file, &made, &y->count, e)) return false;
        y->bar = x->made ? made : change(x, t, f, &y->count);
        if (!y->bar) return err_run(e, "%s: no memory for a copy of its bars", x->file);
    }
    return true;
}

dataset *history_build(const history *h, int64_t t, future f, err *e) {
    build_source as = h->from;
    dataset *d = NULL;
    build_series *all = calloc((size_t)h->from.series, sizeof *all);
    bool ok = all != NULL || err_run(e, "no memory for %d instruments", h->from.series);
    as.series = 0;
    as.of = all;
    for (int k = 0; ok && k < h->from.series; k++)
        if (f != FUTURE_CUT || h->since[k] <= t) ok = change_series(h, &h->from.of[k], t, f, &all[as.series++], e);
    if (ok) d = build_bars(&as, &h->o, NULL, NULL, e);
    for (int k = 0; all && k < as.series; k++)
        for (int i = 0; i < as.frames; i++) free((void *)(uintptr_t)all[k].frame[i].bar);
    free(all);
    return d;
}

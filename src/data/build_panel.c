// A panel of series to samples of a forecaster.
#include "data/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t length_of(const panel *p, int64_t s) {
    return p->offset[s + 1] - p->offset[s];
}

// Samples of a series: how many lie `back` values before its last possible one. Of those less than a horizon before it,
// only that one is taken: the targets of the others would touch what is held out.
static bool has_sample(const build_panel_options *o, int64_t length, int64_t back) {
    int64_t seen = length - o->horizon - back;
    return seen >= o->history && (!back || (back >= o->horizon && (!o->recent || back <= o->recent)));
}

// The places of samples, from far to near the end of their series.
static int64_t place(const panel *p, const build_panel_options *o, dataset *d, float *target, int32_t *row,
    int32_t *first, int64_t *held) {
    int64_t longest = 0, n = 0;
    for (int64_t s = 0; s < p->series; s++) longest = length_of(p, s) > longest ? length_of(p, s) : longest;
    for (int64_t back = longest; back >= 0; back--) {
        int64_t before = n;
        for (int64_t s = 0; s < p->series; s++) {
            if (!has_sample(o, length_of(p, s), back)) continue;
            int64_t t = p->offset[s + 1] - 1 - o->horizon - back;
            if (d) {
                row[n] = (int32_t)t;
                first[n] = (int32_t)p->offset[s];
                for (int64_t i = 0; i < o->horizon; i++) target[n * o->horizon + i] = (float)p->value[t + 1 + i];
            }
            n++;
        }
        *held = n - before;
    }
    return n;
}

static bool check(const panel *p, const char *name, const build_panel_options *o, err *e) {
    if (o->horizon < 1 || o->horizon > LABEL_BARS_MOST || o->history < 1)
        return err_input(e, "%s: a horizon of %" PRId64 " values after %" PRId64 "; use 1 to %d after at least 1", name,
            o->horizon, o->history, LABEL_BARS_MOST);
    if (o->recent && o->recent < o->horizon)
        return err_input(e, "%s: the last %" PRId64 " values have no room for %" PRId64 " targets; use more", name,
            o->recent, o->horizon);
    if (p->offset[p->series] > INT32_MAX)
        return err_input(e, "%s: more than %d values; split the file", name, INT32_MAX);
    return true;
}

// The series' names and where they begin.
static void take_names(dataset *d, const panel *p, size_t *at) {
    int64_t *first = dataset_take(d, at, p->series + 1, sizeof *first);
    const char **names = dataset_take(d, at, p->series, sizeof *names);
    memcpy(first, p->offset, (size_t)(p->series + 1) * sizeof *first);
    for (int64_t i = 0; i < p->series; i++) {
        size_t bytes = strlen(p->name[i]) + 1;
        names[i] = memcpy(dataset_take(d, at, (int64_t)bytes, 1), p->name[i], bytes);
    }
    d->panel = p->series;
    d->panel_first = first;
    d->panel_names = names;
}

static size_t names_room(const panel *p) {
    size_t bytes = dataset_room(p->series + 1, sizeof(int64_t)) + dataset_room(p->series, sizeof(char *));
    for (int64_t i = 0; i < p->series; i++) bytes += dataset_room((int64_t)strlen(p->name[i]) + 1, 1);
    return bytes;
}

dataset *build_panel(const panel *p, const char *name, const build_panel_options *o, err *e) {
    static const char *const column[] = {"value"};
    if (!check(p, name, o, e)) return NULL;
    int64_t values = p->offset[p->series], held, samples = place(p, o, NULL, NULL, NULL, NULL, &held);
    if (samples - held < 1 || samples > INT32_MAX) {
        err_input(e,
            "%s: %" PRId64 " samples beside the %" PRId64
            " that are held out; use another --horizon, --history or --recent",
            name, samples - held, held);
        return NULL;
    }
    size_t at = 0, named = strlen(name) + 1,
           bytes = dataset_room((int64_t)named, 1) + dataset_room(values, sizeof(float)) +
                   2 * dataset_room(samples, sizeof(int32_t)) + dataset_room(samples * o->horizon, sizeof(float)) +
                   names_room(p);
    dataset *d = dataset_new(bytes, e);
    if (!d) return NULL;
    d->name = memcpy(dataset_take(d, &at, (int64_t)named, 1), name, named);
    float *value = dataset_take(d, &at, values, sizeof *value);
    int32_t *row = dataset_take(d, &at, samples, sizeof *row), *first = dataset_take(d, &at, samples, sizeof *first);
    float *target = dataset_take(d, &at, samples * o->horizon, sizeof *target);
    for (int64_t i = 0; i < values; i++) {
        value[i] = (float)p->value[i];
        if (isfinite(value[i])) continue;
        err_input(e, "%s: the value %g is too large for f32; scale the series down", name, p->value[i]);
        dataset_free(d);
        return NULL;
    }
    place(p, o, d, target, row, first, &held);
    d->samples = samples;
    d->streams = 1;
    d->stream[0] = (stream){.name = "series", .row = row, .first = first};
    d->stream[0].series = table_of(COLUMN_F32, values, 1, value);
    d->stream[0].series.columns = column;
    d->target = target;
    d->target_width = d->horizon = o->horizon;
    d->held = held;
    take_names(d, p, &at);
    return d;
}

static void release(void *owner) {
    dataset_free(owner);
}

dataset *build_ends(dataset *from, err *e) {
    int64_t n = from->target ? from->panel : 0, width = from->target_width;
    size_t at = 0, bytes = 2 * dataset_room(n, sizeof(int32_t)) + dataset_room(n * width, sizeof(float));
    dataset *d = n ? dataset_new(bytes, e) : NULL;
    if (!n) err_input(e, "%s: holds no series with names and targets; import a panel (one series a row)", from->name);
    if (!d) {
        dataset_free(from);
        return NULL;
    }
    int32_t *row = dataset_take(d, &at, n, sizeof *row), *first = dataset_take(d, &at, n, sizeof *first);
    d->target = dataset_take(d, &at, n * width, sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        first[i] = (int32_t)from->panel_first[i];
        row[i] = (int32_t)from->panel_first[i + 1] - 1;
    }
    d->name = from->name;
    d->samples = d->panel = n;
    d->panel_names = from->panel_names;
    d->panel_first = from->panel_first;
    d->streams = 1;
    d->stream[0] = (stream){.name = from->stream[0].name, .series = from->stream[0].series, .row = row, .first = first};
    d->target_width = d->horizon = width;
    d->owner = from;
    d->release = release;
    return d;
}

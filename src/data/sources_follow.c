// Bars that go on from those of a dataset.
#include "data/sources_work.h"
#include "data/when.h"

#include <stdlib.h>
#include <string.h>

// The symbols and frames of a dataset, with features by the names of its columns.
static bool take_old(sources *s, const dataset *old, err *e) {
    const json_t *all = json_object_get(old->about, "sources");
    s->build.series = (int)dataset_series(old);
    s->build.frames = old->streams;
    s->series = calloc((size_t)s->build.series, sizeof *s->series);
    if (!s->series) return err_run(e, "%s: no memory for %d instruments", old->name, s->build.series);
    s->build.of = s->series;
    for (int i = 0; i < old->streams; i++) {
        const stream *x = &old->stream[i];
        s->build.frame[i] = (frame_spec){x->name, old->span[i], x->series.columns, (int)x->series.width};
    }
    for (int k = 0; k < s->build.series; k++) {
        s->series[k].symbol = old->panel ? old->panel_names[k] : "";
        for (int i = 0; i < old->streams; i++) {
            const json_t *of = json_array_get(all, (size_t)(k * old->streams + i));
            const char *file = json_string_value(json_object_get(of, "file"));
            s->series[k].frame[i] =
                (build_bars_of){.file = file ? file : old->name, .made = json_is_true(json_object_get(of, "made"))};
        }
    }
    return true;
}

// The last bar of an instrument that a dataset has of a frame.
static bar last_of(const dataset *old, int series, int frame) {
    const bar_table *t = &old->stream[frame].bars;
    return dataset_bar(t, t->start[series + 1] - 1);
}

// The bars of a file that are newer than the dataset's, and the others checked.
static bool place_newer(sources *s, const dataset *old, const source_file *f, unsigned force, err *e) {
    char span[32];
    int k = sources_series(s, f->symbol), i = sources_frame(s, f->bars.span);
    if (k < 0)
        return f->symbol[0]
                   ? err_input(e, "%s: %s is not in %s; import all instruments anew", f->path, f->symbol, old->name)
                   : err_input(e, "%s: say which instrument of %s it is: --symbol NAME", f->path, old->name);
    if (i < 0 || s->series[k].frame[i].made)
        return err_input(e, "%s: has bars of %s, and %s is not made of such files", f->path,
            when_span_text(span, sizeof span, f->bars.span), old->name);
    build_bars_of *to = &s->series[k].frame[i];
    if (to->bar) return err_input(e, "%s: is a second file of the same span; give each span once", f->path);
    bar last = last_of(old, k, i);
    int64_t n = 0;
    while (n < f->bars.count && f->bars.bar[n].time <= last.time) n++;
    if (!sources_check_known(s, old, f, k, i, n, force, e)) return false;
    to->file = f->path;
    to->bar = f->bars.bar + n;
    to->count = f->bars.count - n;
    return true;
}

bar *sources_newest(const bar_table *t, int series, int64_t row, const build_bars_of *newer, int64_t *count) {
    int64_t had = t->start[series + 1] - row;
    *count = had + newer->count;
    bar *all = malloc((size_t)(*count + 1) * sizeof *all);
    for (int64_t r = 0; all && r < had; r++) all[r] = dataset_bar(t, row + r);
    if (all && newer->count) memcpy(all + had, newer->bar, (size_t)newer->count * sizeof *all);
    return all;
}

// The finest bars behind the last coarse one that was made of them, old and new.
static bool make_newer(sources *s, const dataset *old, int k, int i, err *e) {
    const build_bars_of *fine = &s->series[k].frame[0];
    const bar_table *t = &old->stream[0].bars;
    bar last = last_of(old, k, i);
    int64_t n;
    bar *joined = sources_newest(t, k, dataset_bar_from(t, k, last.end), fine, &n);
    if (!joined) return sources_no_memory(s, e);
    frame_source source = {joined, n, old->span[0], true};
    bool ok = sources_make(s, &s->series[k].frame[i], &source, fine->file, old->span[i], e);
    free(joined);
    return ok;
}

// Files are read from some bars before the ends of what is known, so that each shows its span and its last known bar.
// A row's stamp may be its date alone, on a clock that is up to a day away from UTC.
static int64_t read_from(const sources *s, const dataset *old) {
    enum { BARS = 64 };
    int64_t from = INT64_MAX;
    for (int i = 0; i < old->streams; i++)
        for (int k = 0; k < s->build.series; k++) {
            int64_t at = last_of(old, k, i).time - BARS * old->span[i] - 2 * WHEN_DAY;
            if (!s->series[k].frame[i].made && at < from) from = at;
        }
    return from;
}

// The spans of which the dataset has files.
static int list_spans(const sources *s, int64_t *spans) {
    int n = 0;
    for (int i = 0; i < s->build.frames; i++) {
        bool made = true;
        for (int k = 0; k < s->build.series; k++) made &= s->series[k].frame[i].made;
        if (!made) spans[n++] = s->build.frame[i].span;
    }
    return n;
}

// A dataset, for the hours that its bars show, and the symbol that the caller gives a file; NULL: none.
typedef struct {
    const sources *of;
    const dataset *old;
    const char *symbol;
} known;

// Bars of the last 60 weeks, which have every season, or as many as are quickly counted.
static bar *known_before(
    const void *arg, const char *symbol, int64_t span, int64_t until, int64_t *count, int64_t *newest) {
    enum { WEEKS = 60, MOST = 200000 };
    const known *x = arg;
    int k = sources_series(x->of, x->symbol ? x->symbol : symbol), i = sources_frame(x->of, span);
    if (k < 0 || i < 0) return NULL;
    const bar_table *t = &x->old->stream[i].bars;
    *newest = last_of(x->old, k, i).time;
    int64_t end = dataset_bar_from(t, k, until);
    if (end == t->start[k]) return NULL;
    int64_t row = dataset_bar_from(t, k, t->time[2 * end - 2] - WEEKS * (int64_t)WHEN_WEEK);
    if (end - row > MOST) row = end - MOST;
    bar *all = malloc((size_t)(end - row) * sizeof *all);
    NEED(all, "out of memory for %lld bars that are known", (long long)(end - row));
    for (int64_t r = row; r < end; r++) all[r - row] = dataset_bar(t, r);
    *count = end - row;
    return all;
}

// A bar within the dataset's time is of the span that has it; of spans that another given file has it is none.
static bars_fit known_fits(const void *arg, const char *symbol, int64_t span, const bar *b) {
    const known *x = arg;
    const char *name = x->symbol ? x->symbol : symbol;
    int k = sources_series(x->of, name), i = sources_frame(x->of, span);
    if (k < 0 || i < 0) return BARS_FIT_NEWER;
    if (x->of->series[k].frame[i].made) return BARS_FIT_NOT;
    for (int f = 0; f < x->of->files; f++)
        if (x->of->file[f].bars.span == span && !strcmp(x->of->file[f].symbol, name)) return BARS_FIT_NOT;
    const bar_table *t = &x->old->stream[i].bars;
    int64_t row = dataset_bar_from(t, k, b->time), last = t->time[2 * t->start[k + 1] - 2];
    if (span <= WHEN_HOUR && (b->time - last) % span != 0) return BARS_FIT_NOT; // such bars open at whole spans
    if (row == t->start[k + 1]) return BARS_FIT_NEWER;
    bar there = dataset_bar(t, row);
    return there.time == b->time && sources_same_bar(b, &there) ? BARS_FIT_KNOWN : BARS_FIT_NOT;
}

// Files of a single bar that may be of several spans are read again when the spans of the others are known.
static bool read_newer(sources *s, const dataset *old, const source_ask *ask, int count, bars_options *o, err *e) {
    int *later = calloc((size_t)count + 1, sizeof *later), laters = 0;
    bool ok = later || sources_no_memory(s, e), unclear;
    o->unclear = &unclear;
    for (int i = 0; ok && i < count; i++) {
        unclear = false;
        o->arg = &(known){s, old, ask[i].symbol};
        ok = sources_add(s, &ask[i], o, e) || unclear;
        if (unclear) later[laters++] = i;
    }
    for (int i = 0; ok && i < laters; i++) {
        o->arg = &(known){s, old, ask[later[i]].symbol};
        ok = sources_add(s, &ask[later[i]], o, e);
    }
    free(later);
    return ok;
}

static bool follow(sources *s, const dataset *old, const source_ask *ask, int count, const bars_options *o, err *e) {
    bars_options newer = *o;
    int64_t spans[FRAMES_MOST];
    if (!take_old(s, old, e)) return false;
    newer.from = read_from(s, old);
    newer.spans = spans;
    newer.span_count = list_spans(s, spans);
    newer.before = known_before;
    newer.fits = known_fits;
    if (!read_newer(s, old, ask, count, &newer, e)) return false;
    for (int i = 0; i < s->files; i++)
        if (!place_newer(s, old, &s->file[i], o->force, e)) return false;
    for (int k = 0; k < s->build.series; k++)
        for (int i = 1; i < s->build.frames; i++)
            if (s->series[k].frame[i].made && !make_newer(s, old, k, i, e)) return false;
    return sources_check_agreement(s, old, o->force, e);
}

bool sources_follow(sources *s, const dataset *old, const source_ask *ask, int count, const bars_options *o, err *e) {
    *s = (sources){0};
    arena_init(&s->arena);
    if (follow(s, old, ask, count, o, e)) return true;
    sources_done(s);
    return false;
}

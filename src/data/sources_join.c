// Files joined to instruments: symbols in order, spans from fine to coarse, every instrument with the same frames.
#include "data/frame.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/when.h"

#include <stdlib.h>
#include <string.h>

static bool no_memory(const sources *s, err *e) {
    return err_run(e, "%s: no memory to join %d files", s->file[0].path, s->files);
}

// Symbols

// Either every file has a symbol, or none has.
static bool check_symbols(const sources *s, err *e) {
    const source_file *with = NULL, *without = NULL;
    for (int i = 0; i < s->files; i++) {
        if (s->file[i].symbol[0])
            with = &s->file[i];
        else
            without = &s->file[i];
        if (s->file[i].symbol[0] && !panel_name_ok(s->file[i].symbol))
            return err_input(e, "%s: \"%.40s\" cannot be a symbol; use letters, digits and _-.#/=^", s->file[i].path,
                s->file[i].symbol);
    }
    if (!with || !without) return true;
    return err_input(e, "%s: has no symbol, but %s is of %s; put --symbol NAME before it", without->path, with->path,
        with->symbol);
}

static int find_series(const sources *s, const char *symbol) {
    for (int k = 0; k < s->build.series; k++)
        if (!strcmp(s->series[k].symbol, symbol)) return k;
    return -1;
}

static int by_symbol(const void *a, const void *b) {
    return strcmp(((const build_series *)a)->symbol, ((const build_series *)b)->symbol);
}

static bool list_symbols(sources *s, err *e) {
    s->series = calloc((size_t)s->files, sizeof *s->series);
    if (!s->series) return no_memory(s, e);
    s->build.of = s->series;
    for (int i = 0; i < s->files; i++)
        if (find_series(s, s->file[i].symbol) < 0) s->series[s->build.series++].symbol = s->file[i].symbol;
    qsort(s->series, (size_t)s->build.series, sizeof *s->series, by_symbol);
    return true;
}

// Frames

static int find_frame(const sources *s, int64_t span) {
    for (int i = 0; i < s->build.frames; i++)
        if (s->build.frame[i].span == span) return i;
    return -1;
}

// Puts a frame into its place by its span.
static bool add_span(sources *s, int64_t span, const char *name, const char *file, err *e) {
    frame_spec *all = s->build.frame;
    if (s->build.frames == FRAMES_MOST) return err_input(e, "%s: one span too many; use up to %d", file, FRAMES_MOST);
    int at = s->build.frames++;
    for (; at && all[at - 1].span > span; at--) all[at] = all[at - 1];
    all[at] = (frame_spec){.name = name, .span = span};
    return true;
}

static bool list_frames(sources *s, err *e) {
    for (int i = 0; i < s->files; i++) {
        const source_file *f = &s->file[i];
        int at = find_frame(s, f->bars.span);
        if (at < 0) {
            if (!add_span(s, f->bars.span, f->stream, f->path, e)) return false;
            continue;
        }
        frame_spec *frame = &s->build.frame[at];
        if (f->stream && frame->name && strcmp(f->stream, frame->name) != 0)
            return err_input(e, "%s: is named %s, but bars of the same span are named %s; use one name", f->path,
                f->stream, frame->name);
        if (!frame->name) frame->name = f->stream;
    }
    return true;
}

// Puts every file's bars where they belong.
static bool place_files(sources *s, err *e) {
    for (int i = 0; i < s->files; i++) {
        const source_file *f = &s->file[i];
        build_bars_of *to = &s->series[find_series(s, f->symbol)].frame[find_frame(s, f->bars.span)];
        if (to->file && !f->symbol[0])
            return err_input(e,
                "%s: has bars of the same span as %s; give each span once, or name the instruments: --symbol A %s "
                "--symbol B %s",
                f->path, to->file, to->file, f->path);
        if (to->file)
            return err_input(e, "%s: has bars of %s of the same span as %s; give each span once", f->path, f->symbol,
                to->file);
        *to = (build_bars_of){f->path, f->bars.bar, f->bars.count, false};
    }
    return true;
}

// Every instrument has bars of every span.
static bool check_whole(const sources *s, err *e) {
    char span[32];
    for (int k = 0; k < s->build.series; k++)
        for (int i = 0; i < s->build.frames; i++) {
            if (s->series[k].frame[i].file) continue;
            return err_input(e, "%s: no bars of %s, which other instruments have; give them, or make them of finer ones with --frames",
                s->series[k].symbol, when_span_text(span, sizeof span, s->build.frame[i].span));
        }
    return true;
}

// Makes a coarser frame of an instrument's finest bars, as they stand behind those that are in coarser bars already.
static bool make_bars(sources *s, build_bars_of *to, const frame_source *from, const char *file, int64_t span, err *e) {
    char text[32];
    bar **more = realloc(s->made, (size_t)(s->made_count + 1) * sizeof *more);
    if (!more) return no_memory(s, e);
    s->made = more;
    s->made[s->made_count] = NULL;
    if (!frame_make(from, span, file, &s->made[s->made_count], &to->count, e)) return false;
    to->bar = s->made[s->made_count++];
    to->file = arena_format(&s->arena, "%s (%s)", file, when_span_text(text, sizeof text, span));
    to->made = true;
    return true;
}

static bool add_frame(sources *s, const char *text, err *e) {
    int64_t span;
    if (!frame_read(text, strlen(text), &span))
        return err_input(e, "\"%s\" is no frame; write 5m, 1h, 4h, 1d, 1w or 1mo", text);
    if (find_frame(s, span) >= 0)
        return err_input(e, "--frames %s: bars of that span are there already; give each span once", text);
    // Frames are listed from fine to coarse, so those behind this one move on by a place.
    int64_t finest = s->build.frame[0].span;
    if (span < finest)
        return err_input(e, "--frames %s: is finer than the bars of %s; name coarser ones", text, s->file[0].path);
    if (!add_span(s, span, NULL, text, e)) return false;
    int at = find_frame(s, span);
    for (int k = 0; k < s->build.series; k++) {
        build_bars_of *all = s->series[k].frame;
        memmove(all + at + 1, all + at, (size_t)(FRAMES_MOST - at - 1) * sizeof *all);
        all[at] = (build_bars_of){0};
        frame_source from = {all[0].bar, all[0].count, finest, false};
        if (!make_bars(s, &all[at], &from, all[0].file, span, e)) return false;
    }
    return true;
}

// Names

static bool is_taken(const sources *s, const char *name) {
    for (int i = 0; i < s->build.frames; i++)
        if (s->build.frame[i].name && !strcmp(s->build.frame[i].name, name)) return true;
    return false;
}

// The usual name of its place or, where the user gave that to another, the next one.
static const char *free_name(const sources *s, int place) {
    for (int k = 0; k < FRAMES_MOST; k++) {
        const char *name = build_stream_names[(place + k) % FRAMES_MOST];
        if (!is_taken(s, name)) return name;
    }
    return build_stream_names[place];
}

static bool name_frames(sources *s, err *e) {
    for (int i = 0; i < s->build.frames; i++) {
        if (!s->build.frame[i].name) s->build.frame[i].name = free_name(s, i);
        const char *name = s->build.frame[i].name;
        if (!set_name_ok(name))
            return err_input(e, "\"%.40s\" cannot name a stream; use letters, digits, _ and -", name);
        for (int k = 0; k < i; k++)
            if (!strcmp(s->build.frame[k].name, name)) return err_input(e, "two streams are named %s; rename one", name);
    }
    return true;
}

static bool read_all(sources *s, const source_ask *ask, int count, const bars_options *o, const char *const *frames,
    int frame_count, err *e) {
    for (int i = 0; i < count; i++)
        if (!sources_add(s, &ask[i], o, e)) return false;
    if (!check_symbols(s, e) || !list_symbols(s, e) || !list_frames(s, e) || !place_files(s, e)) return false;
    if (!check_whole(s, e)) return false;
    for (int i = 0; i < frame_count; i++)
        if (!add_frame(s, frames[i], e)) return false;
    return name_frames(s, e);
}

bool sources_read(sources *s, const source_ask *ask, int count, const bars_options *o, const char *const *frames,
    int frame_count, err *e) {
    CHECK(count > 0, "no bar files");
    *s = (sources){0};
    arena_init(&s->arena);
    if (read_all(s, ask, count, o, frames, frame_count, e)) return true;
    sources_done(s);
    return false;
}

// Bars that go on

// The symbols and frames of a dataset, with features by the names of its columns.
static bool take_old(sources *s, const dataset *old, err *e) {
    const json_t *all = json_object_get(old->about, "sources");
    s->build.series = (int)dataset_series(old);
    s->build.frames = old->streams;
    s->series = calloc((size_t)s->build.series, sizeof *s->series);
    if (!s->series) return no_memory(s, e);
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

static bool same_prices(const bar *a, const bar *b) {
    return a->open == b->open && a->high == b->high && a->low == b->low && a->close == b->close;
}

// The bars of a file that are newer than the dataset's. The last bar that both have must be the same.
static bool place_newer(sources *s, const dataset *old, const source_file *f, err *e) {
    char span[32], when[32];
    int k = find_series(s, f->symbol), i = find_frame(s, f->bars.span);
    if (k < 0)
        return f->symbol[0] ? err_input(e, "%s: %s is not in %s; import all instruments anew", f->path, f->symbol, old->name)
                            : err_input(e, "%s: say which instrument of %s it is: --symbol NAME", f->path, old->name);
    if (i < 0 || s->series[k].frame[i].made)
        return err_input(e, "%s: has bars of %s, and %s is not made of such files", f->path,
            when_span_text(span, sizeof span, f->bars.span), old->name);
    build_bars_of *to = &s->series[k].frame[i];
    if (to->bar) return err_input(e, "%s: is a second file of the same span; give each span once", f->path);
    bar last = last_of(old, k, i);
    int64_t n = 0;
    while (n < f->bars.count && f->bars.bar[n].time <= last.time) n++;
    if (n && f->bars.bar[n - 1].time == last.time && !same_prices(&f->bars.bar[n - 1], &last))
        return err_input(e, "%s: the bar of %s differs from the one in %s; import all bars anew", f->path,
            when_text(when, sizeof when, last.time), old->name);
    to->bar = f->bars.bar + n;
    to->count = f->bars.count - n;
    return true;
}

// The finest bars behind the last coarse one that was made of them, old and new.
static bool make_newer(sources *s, const dataset *old, int k, int i, err *e) {
    const build_bars_of *fine = &s->series[k].frame[0];
    const bar_table *t = &old->stream[0].bars;
    bar last = last_of(old, k, i);
    int64_t from = t->start[k + 1];
    while (from > t->start[k] && t->time[2 * (from - 1)] >= last.end) from--;
    int64_t had = t->start[k + 1] - from, n = had + fine->count;
    bar *joined = malloc((size_t)(n + 1) * sizeof *joined);
    if (!joined) return no_memory(s, e);
    for (int64_t r = 0; r < had; r++) joined[r] = dataset_bar(t, from + r);
    if (fine->count) memcpy(joined + had, fine->bar, (size_t)fine->count * sizeof *joined);
    frame_source source = {joined, n, old->span[0], true};
    bool ok = make_bars(s, &s->series[k].frame[i], &source, fine->file, old->span[i], e);
    free(joined);
    return ok;
}

static bool follow(sources *s, const dataset *old, const source_ask *ask, int count, const bars_options *o, err *e) {
    for (int i = 0; i < count; i++)
        if (!sources_add(s, &ask[i], o, e)) return false;
    if (!take_old(s, old, e)) return false;
    for (int i = 0; i < s->files; i++)
        if (!place_newer(s, old, &s->file[i], e)) return false;
    for (int k = 0; k < s->build.series; k++)
        for (int i = 1; i < s->build.frames; i++)
            if (s->series[k].frame[i].made && !make_newer(s, old, k, i, e)) return false;
    return true;
}

bool sources_follow(sources *s, const dataset *old, const source_ask *ask, int count, const bars_options *o, err *e) {
    CHECK(count > 0, "no bar files");
    *s = (sources){0};
    arena_init(&s->arena);
    if (follow(s, old, ask, count, o, e)) return true;
    sources_done(s);
    return false;
}

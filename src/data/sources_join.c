// Files joined to instruments: symbols in order, spans from fine to coarse, every instrument with the same frames.
#include "data/agree.h"
#include "data/set.h"
#include "data/sources_work.h"
#include "data/when.h"

#include <stdlib.h>
#include <string.h>

bool sources_no_memory(const sources *s, err *e) {
    return err_run(e, "no memory to join %d files", s->files);
}

// Symbols

static bool symbol_ok(const char *symbol) {
    size_t n = strspn(symbol, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.#/=^");
    return n && n < BARS_SYMBOL_ROOM && !symbol[n];
}

// Either every file has a symbol, or none has.
static bool check_symbols(const sources *s, err *e) {
    const source_file *with = NULL, *without = NULL;
    for (int i = 0; i < s->files; i++) {
        if (s->file[i].symbol[0])
            with = &s->file[i];
        else
            without = &s->file[i];
        if (s->file[i].symbol[0] && !symbol_ok(s->file[i].symbol))
            return err_input(e, "%s: \"%.40s\" cannot be a symbol; use at most %d letters, digits and _-.#/=^",
                s->file[i].path, s->file[i].symbol, BARS_SYMBOL_ROOM - 1);
    }
    if (!with || !without) return true;
    return err_input(
        e, "%s: has no symbol, but %s is of %s; put --symbol NAME before it", without->path, with->path, with->symbol);
}

int sources_series(const sources *s, const char *symbol) {
    for (int k = 0; k < s->build.series; k++)
        if (!strcmp(s->series[k].symbol, symbol)) return k;
    return -1;
}

static int by_symbol(const void *a, const void *b) {
    return strcmp(((const build_series *)a)->symbol, ((const build_series *)b)->symbol);
}

static bool list_symbols(sources *s, err *e) {
    CHECK(s->files > 0, "no files");
    s->series = calloc((size_t)s->files, sizeof *s->series);
    if (!s->series) return sources_no_memory(s, e);
    s->build.of = s->series;
    for (int i = 0; i < s->files; i++)
        if (sources_series(s, s->file[i].symbol) < 0) s->series[s->build.series++].symbol = s->file[i].symbol;
    qsort(s->series, (size_t)s->build.series, sizeof *s->series, by_symbol);
    return true;
}

// Frames

int sources_frame(const sources *s, int64_t span) {
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
        int at = sources_frame(s, f->bars.span);
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
        build_bars_of *to = &s->series[sources_series(s, f->symbol)].frame[sources_frame(s, f->bars.span)];
        if (to->file && !f->symbol[0])
            return err_input(e,
                "%s: has bars of the same span as %s; give each span once, or name the instruments: --symbol A %s "
                "--symbol B %s",
                f->path, to->file, to->file, f->path);
        if (to->file)
            return err_input(
                e, "%s: has bars of %s of the same span as %s; give each span once", f->path, f->symbol, to->file);
        *to = (build_bars_of){f->path, f->bars.bar, f->bars.count, false};
    }
    return true;
}

// Coarser files are of the same instrument and clock as the finest one.
static bool check_agreement(sources *s, const bars_options *o, err *e) {
    for (int k = 0; k < s->build.series; k++)
        for (int i = 1; i < s->build.frames; i++) {
            const build_bars_of *fast = &s->series[k].frame[0], *slow = &s->series[k].frame[i];
            agree_report r = {0};
            agree_bars a = {fast->bar, fast->count, s->build.frame[0].span, fast->file},
                       b = {slow->bar, slow->count, s->build.frame[i].span, slow->file};
            bool ok = agree_check(&a, &b, o ? o->force : 0, &r, e);
            s->forced |= r.forced;
            if (!ok) return false;
        }
    return true;
}

// Every instrument has bars of every span.
static bool check_whole(const sources *s, err *e) {
    char span[32];
    for (int k = 0; k < s->build.series; k++)
        for (int i = 0; i < s->build.frames; i++) {
            if (s->series[k].frame[i].file) continue;
            return err_input(e,
                "%s: no bars of %s, which other instruments have; give them, or make them of finer ones with --frames",
                s->series[k].symbol, when_span_text(span, sizeof span, s->build.frame[i].span));
        }
    return true;
}

bool sources_make(sources *s, build_bars_of *to, const frame_source *from, const char *file, int64_t span, err *e) {
    char text[32];
    bar **more = realloc(s->made, (size_t)(s->made_count + 1) * sizeof *more);
    if (!more) return sources_no_memory(s, e);
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
    if (sources_frame(s, span) >= 0)
        return err_input(e, "--frames %s: bars of that span are there already; give each span once", text);
    // Frames are listed from fine to coarse, so those behind this one move on by a place.
    int64_t finest = s->build.frame[0].span;
    if (span < finest)
        return err_input(e, "--frames %s: is finer than the bars of %s; name coarser ones", text, s->file[0].path);
    if (!add_span(s, span, NULL, text, e)) return false;
    int at = sources_frame(s, span);
    for (int k = 0; k < s->build.series; k++) {
        build_bars_of *all = s->series[k].frame;
        memmove(all + at + 1, all + at, (size_t)(FRAMES_MOST - at - 1) * sizeof *all);
        all[at] = (build_bars_of){0};
        frame_source from = {all[0].bar, all[0].count, finest, false};
        if (!sources_make(s, &all[at], &from, all[0].file, span, e)) return false;
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
            return err_input(e, "\"%.40s\" cannot name a stream; use letters, digits, _ and -, and not target", name);
        for (int k = 0; k < i; k++)
            if (!strcmp(s->build.frame[k].name, name))
                return err_input(e, "two streams are named %s; rename one", name);
    }
    return true;
}

static bool read_all(sources *s, const source_ask *ask, int count, const bars_options *o, const char *const *frames,
    int frame_count, err *e) {
    for (int i = 0; i < count; i++)
        if (!sources_add(s, &ask[i], o, e)) return false;
    if (!check_symbols(s, e) || !list_symbols(s, e) || !list_frames(s, e) || !place_files(s, e)) return false;
    if (!check_whole(s, e) || !check_agreement(s, o, e)) return false;
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

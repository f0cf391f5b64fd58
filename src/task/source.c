#include "task/source.h"

#include "base/arena.h"
#include "base/clock.h"
#include "data/set.h"
#include "data/windows.h"
#include "task/describe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEY_ROOM = 160 };

// Puts the user's mistake behind its place in the description.
static bool blame(const config *c, const char *key, const err *why, err *e) {
    if (why->kind == ERR_INPUT) return config_fail(c, key, e, "%s", why->text);
    *e = *why;
    return false;
}

// The same of a file that could not be read: one that is named without its folder may be looked for elsewhere.
static bool blame_file(const config *c, const char *key, const char *path, const err *why, err *e) {
    bool named = why->kind == ERR_INPUT && *path != '/' && strcmp(path, "-") != 0;
    if (!named || access(path, F_OK) == 0 || errno != ENOENT) return blame(c, key, why, e);
    return config_fail(c, key, e, "%s, or set $TRADEWIND_DATA to the folder of the file", why->text);
}

static frame_spec *frame_named(sources *from, const char *name) {
    for (int k = 0; k < from->build.frames; k++)
        if (strcmp(from->build.frame[k].name, name) == 0) return &from->build.frame[k];
    return NULL;
}

static bool set_features(const config *c, sources *from, err *e) {
    for (size_t i = 0; i < config_count(c, "data.features"); i++) {
        const char *name = config_child(c, "data.features", i);
        frame_spec *to = frame_named(from, name);
        char path[KEY_ROOM];
        snprintf(path, sizeof path, "data.features.%s", name);
        if (!to) return config_fail(c, path, e, "the data has no such stream; data.bars names them");
        int n = (int)config_items(c, path);
        const char **list = arena_array(&from->arena, (size_t)n + 1, sizeof *list);
        for (int k = 0; k < n; k++) list[k] = config_item(c, path, (size_t)k);
        to->features = list;
        to->feature_count = n;
    }
    return true;
}

static void add_file(source_ask *ask, int *n, source_ask file) {
    if (*n < TASK_FILES_MOST) ask[*n] = file;
    ++*n;
}

// The files that data.bars names: by stream, or by symbol and then by stream. Returns how many; up to TASK_FILES_MOST
// are listed.
static int list_files(const config *c, source_ask *ask) {
    int n = 0;
    for (size_t i = 0; i < config_count(c, "data.bars"); i++) {
        const char *name = config_child(c, "data.bars", i);
        char key[KEY_ROOM], below[2 * KEY_ROOM];
        snprintf(key, sizeof key, "data.bars.%s", name);
        size_t streams = config_count(c, key);
        if (!streams) add_file(ask, &n, (source_ask){.path = config_text(c, key), .stream = name});
        for (size_t k = 0; k < streams; k++) {
            const char *stream = config_child(c, key, k);
            snprintf(below, sizeof below, "%s.%s", key, stream);
            add_file(ask, &n, (source_ask){config_text(c, below), name, stream});
        }
    }
    return n;
}

static dataset *build(const config *c, const settings *s, const sources *from, const task_listener *l, err *e) {
    build_report r;
    err why = {0};
    dataset *d = build_bars(&from->build, &s->build, NULL, &r, &why);
    if (!d) {
        blame(c, "data.bars", &why, e);
        return NULL;
    }
    json_decref(d->about);
    d->about = sources_about(from, &s->build, &s->bars);
    task_event told = {.kind = TASK_BARS, .bars = {from, &r}};
    task_tell(l, &told);
    return d;
}

bool source_bars(const config *c, const settings *s, sources *from, err *e) {
    source_ask ask[TASK_FILES_MOST];
    const char *frame[FRAMES_MOST];
    size_t frames = config_items(c, "data.frames");
    if (frames >= FRAMES_MOST)
        return config_fail(c, "data.frames", e, "%zu frames beside the finest; use up to %d", frames, FRAMES_MOST - 1);
    int files = list_files(c, ask);
    if (files > TASK_FILES_MOST)
        return config_fail(c, "data.bars", e,
            "names %d files; use up to %d, or join instruments in files with a column symbol", files, TASK_FILES_MOST);
    for (size_t i = 0; i < frames; i++) frame[i] = config_item(c, "data.frames", i);
    err why = {0};
    if (!sources_read(from, ask, files, &s->bars, frame, (int)frames, &why)) {
        int i = 0;
        while (i + 1 < files && access(ask[i].path, F_OK) == 0) i++;
        return blame_file(c, "data.bars", ask[i].path, &why, e);
    }
    if (set_features(c, from, e)) return true;
    sources_done(from);
    return false;
}

static dataset *from_bars(const config *c, const settings *s, const task_listener *l, err *e) {
    sources from;
    if (!source_bars(c, s, &from, e)) return NULL;
    dataset *d = build(c, s, &from, l, e);
    sources_done(&from);
    return d;
}

dataset *source_open_file(const char *path, err *e) {
    npz z;
    source_kind kind;
    if (!source_kind_of(path, &kind, e)) return NULL;
    if (kind != SOURCE_ARRAYS) {
        err_input(
            e, "%s: is not an .npz; make a dataset of it with `tradewind import`, or name bars as data.bars", path);
        return NULL;
    }
    if (!npz_open(&z, path, e)) return NULL;
    bool made = npz_find(&z, set_mark) != NULL;
    npz_close(&z);
    return made ? set_open(path, e) : windows_open(path, e);
}

// Checking

typedef struct {
    const dataset *data;
    const task_listener *listener;
    double began;
    bool told;
} checking;

// From the first blocks on it is known how long all take.
static void on_progress(void *arg, uint64_t done) {
    static const double look_after = 0.5, worth_telling = 3;
    checking *c = arg;
    double spent = clock_seconds() - c->began, bytes = (double)npz_bytes(c->data->arrays);
    double all = spent * bytes / (double)done;
    char line[400];
    if (c->told || spent < look_after || all < worth_telling) return;
    c->told = true;
    snprintf(line, sizeof line, "%.200s: its %.1f GB are read against their sums, which takes about %.0f s",
        c->data->name, bytes / 1e9, all);
    task_tell(c->listener, &(task_event){.kind = TASK_CHECK, .line = line});
}

bool source_is_large(const dataset *d, double memory) {
    return d->arrays && (double)npz_bytes(d->arrays) > memory / 2;
}

bool source_check(const dataset *d, const task_listener *l, err *e) {
    checking c = {.data = d, .listener = l, .began = clock_seconds()};
    return !d->arrays || npz_check(d->arrays, on_progress, &c, e);
}

// Opening

static dataset *from_file(const config *c, const settings *s, err *e) {
    err why = {0};
    dataset *d = source_open_file(s->set, &why);
    if (!d) blame_file(c, "data.set", s->set, &why, e);
    return d;
}

dataset *source_open(const config *c, const settings *s, const task_listener *l, err *e) {
    bool bars = config_count(c, "data.bars") > 0, made_up = strcmp(s->set, "synthetic") == 0;
    if (bars && !made_up) {
        config_fail(c, "data.set", e, "data.bars is given too; leave one of them out");
        return NULL;
    }
    dataset *d = bars ? from_bars(c, s, l, e) : made_up ? synthetic_new(&s->synthetic, e) : from_file(c, s, e);
    if (!d || d->classes <= CLASSES_MOST) return d;
    config_fail(c, bars ? "data.bars" : "data.set", e, "has labels of more than %d classes; join some", CLASSES_MOST);
    dataset_free(d);
    return NULL;
}

#include "task/source.h"

#include "base/arena.h"
#include "data/set.h"
#include "data/windows.h"

#include <stdio.h>
#include <string.h>

// Puts the user's mistake behind its place in the description.
static bool blame(const config *c, const char *key, const err *why, err *e) {
    if (why->kind == ERR_INPUT) return config_fail(c, key, e, "%s", why->text);
    *e = *why;
    return false;
}

static bool set_features(const config *c, sources *from, err *e) {
    for (size_t i = 0; i < config_count(c, "data.features"); i++) {
        const char *name = config_child(c, "data.features", i);
        build_stream *to = NULL;
        char path[160];
        snprintf(path, sizeof path, "data.features.%s", name);
        for (int k = 0; k < from->streams; k++)
            if (strcmp(from->stream[k].name, name) == 0) to = &from->stream[k];
        if (!to) return config_fail(c, path, e, "the data has no such stream; data.bars names them");
        int n = (int)config_items(c, path);
        const char **list = arena_array(&from->arena, (size_t)n + 1, sizeof *list);
        for (int k = 0; k < n; k++) list[k] = config_item(c, path, (size_t)k);
        to->features = list;
        to->feature_count = n;
    }
    return true;
}

static dataset *from_bars(const config *c, const settings *s, const task_listener *l, err *e) {
    const char *path[BUILD_STREAMS_MOST], *name[BUILD_STREAMS_MOST], *frame[BUILD_STREAMS_MOST];
    size_t files = config_count(c, "data.bars"), frames = config_items(c, "data.frames");
    char key[160];
    sources from;
    if (files + frames > BUILD_STREAMS_MOST) {
        config_fail(c, "data.bars", e, "%zu streams; use up to %d", files + frames, BUILD_STREAMS_MOST);
        return NULL;
    }
    for (size_t i = 0; i < files; i++) {
        name[i] = config_child(c, "data.bars", i);
        snprintf(key, sizeof key, "data.bars.%s", name[i]);
        path[i] = config_text(c, key);
    }
    for (size_t i = 0; i < frames; i++) frame[i] = config_item(c, "data.frames", i);
    err why = {0};
    dataset *d = NULL;
    if (!sources_read(&from, path, name, (int)files, &s->bars, frame, (int)frames, &why)) {
        blame(c, "data.bars", &why, e);
        return NULL;
    }
    if (set_features(c, &from, e)) {
        build_report r;
        d = build_bars(from.stream, from.streams, &s->build, &r, &why);
        if (!d) blame(c, "data.bars", &why, e);
        task_event told = {.kind = TASK_BARS, .bars = {&from, &r}};
        if (d) task_tell(l, &told);
    }
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

static dataset *from_file(const config *c, const settings *s, err *e) {
    err why = {0};
    dataset *d = source_open_file(s->set, &why);
    if (!d) blame(c, "data.set", &why, e);
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

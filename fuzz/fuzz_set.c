// Dataset files: any bytes are opened or refused; whatever is opened is read to its end, shows its newest bars and goes
// on from its last ones. So are archives of windows, and what kind of file it is can always be said.
#include "data/append.h"
#include "data/latest.h"
#include "data/set.h"
#include "data/sources.h"
#include "data/windows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MOST = 256, WIDTH_MOST = 4096 };

static void read_table(const table *t) {
    static float row[WIDTH_MOST];
    for (int64_t r = 0; t->width <= WIDTH_MOST && r < t->rows && r < ROWS_MOST; r++) table_read(t, r, 1, row);
}

static void find_windows(const void *data, size_t size) {
    npz z;
    err e;
    arena a;
    windows w;
    const char **names;
    if (!npz_open_memory(&z, "fuzz.npz", data, size, &e)) return;
    arena_init(&a);
    if (windows_find(&w, &z, NULL, &a, &e) && w.samples <= 1 << 16) {
        int32_t *label = malloc((size_t)w.samples * sizeof *label);
        int64_t *time = malloc(2 * (size_t)w.samples * sizeof *time);
        if (w.label && label) windows_labels(&w, &z, size % 2, label, &names, &a, &e);
        if (w.time && time) windows_times(&w, &z, 3, time, time + w.samples, &e);
        free(label);
        free(time);
    }
    arena_done(&a);
    npz_close(&z);
}

// Builds on a set as if no bar had come since.
static void go_on(const dataset *d) {
    build_options o;
    bars_options how = {0};
    sources s;
    err e;
    if (!append_options(d, &o, &how, &e) || !sources_follow(&s, d, NULL, 0, &how, &e)) return;
    dataset_free(build_bars(&s.build, &o, d, NULL, &e));
    sources_done(&s);
}

static void show_newest(dataset *d) {
    err e;
    dataset *newest = dataset_view(d, false, 0, &e);
    if (newest) newest = latest_new(newest, 3, &e);
    for (int64_t i = 0; newest && i < newest->samples; i++)
        dataset_bar(&newest->stream[0].bars, dataset_bar_of(newest, i));
    dataset_free(newest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    err e;
    void *copy = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!copy) return 0;
    memcpy(copy, data, size);
    source_kind_in(data, size);
    dataset *d = set_open_memory("fuzz.npz", copy, size, &e);
    for (int i = 0; d && i < d->streams; i++) {
        const stream *x = &d->stream[i];
        read_table(&x->series);
        CHECK(!x->start || x->start[dataset_series(d)] == x->series.rows, "starts of stream %d", i);
    }
    if (d) read_table(&d->vector);
    if (d) show_newest(d);
    if (d) go_on(d);
    dataset_free(d);
    find_windows(copy, size);
    free(copy);
    return 0;
}

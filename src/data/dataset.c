#include "data/dataset.h"

#include <stdlib.h>

enum { ALIGN = 64 };

dataset *dataset_new(size_t bytes, err *e) {
    dataset *d = calloc(1, sizeof *d);
    if (d) d->memory = calloc(1, bytes ? bytes : 1);
    if (d && d->memory) return d;
    free(d);
    err_run(e, "not enough memory for %.1f MB of data; use less of it", (double)bytes / 1e6);
    return NULL;
}

void *dataset_take(dataset *d, size_t *at, int64_t count, size_t size) {
    void *p = (char *)d->memory + *at;
    *at += ((size_t)count * size + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

int64_t dataset_bytes(const dataset *d) {
    int64_t words = d->samples * (d->width + 1 + (d->best ? 1 : 0));
    for (int i = 0; i < d->streams; i++) words += d->stream[i].rows * d->stream[i].features + 2 * d->samples;
    return words * 4;
}

void dataset_free(dataset *d) {
    if (!d) return;
    free(d->memory);
    free(d);
}

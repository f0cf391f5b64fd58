#include "data/dataset.h"

#include <stdlib.h>

int64_t dataset_bytes(const dataset *d) {
    int64_t words = d->samples * (d->width + 1 + (d->best ? 1 : 0));
    for (int i = 0; i < d->streams; i++) words += d->stream[i].rows * d->stream[i].features + 2 * d->samples;
    return words * 4;
}

void dataset_free(dataset *d) {
    if (!d) return;
    arena_done(&d->arena);
    free(d);
}

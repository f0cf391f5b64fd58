#include "cli/texts.h"

#include "graph/dtype.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *finish(FILE *f, char **text, bool ok, err *e) {
    ok = fclose(f) == 0 && ok;
    if (ok) return *text;
    free(*text);
    err_run(e, "out of memory for the description");
    return NULL;
}

static FILE *start(char **text, size_t *bytes, err *e) {
    FILE *f = open_memstream(text, bytes);
    if (!f) err_run(e, "out of memory for the description");
    return f;
}

char *texts_config(const setup *s, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = start(&text, &bytes, e);
    return f ? finish(f, &text, config_write(s->config, f), e) : NULL;
}

// FNV-1a.
static uint64_t hash(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 1099511628211u;
    return h;
}

static void write_device(const setup *s, FILE *f) {
    char device[256];
    setup_device(s, device, sizeof device);
    char *threads = s->device->host_memory ? strrchr(device, ',') : NULL;
    if (threads) *threads = 0;
    fprintf(f, "device: %s\nprecision: %s\n", device, precision_name(s->precision));
}

char *texts_plan(const setup *s, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    const dataset *d = s->data;
    FILE *f = start(&text, &bytes, e);
    if (!f) return NULL;
    write_device(s, f);
    fprintf(f, "micro_batch: %" PRId64 "\naccumulation: %" PRId64 "\nagain: %d\nresidency: %s\n",
        s->settings.batch_size, s->settings.accumulation, s->settings.again, s->job.host ? "host" : "device");
    bool follows = s->tuned.state == WISDOM_FOUND && !(s->tuned.entry.samples_per_s > 0); // a run that goes on
    if (s->tuned_way || follows) fprintf(f, "tuned: %s\n", s->tuned.when);
    if (s->threads) fprintf(f, "threads: %d\n", s->threads);
    if (s->products != PRODUCTS_AUTO) fprintf(f, "products: %s\n", settings_products_name(s->products));
    fprintf(f, "parameters: %" PRId64 "\n", graph_parameter_values(s->job.g));
    if (d->sum) fprintf(f, "data_sum: %08" PRIx32 "\n", d->sum);
    fprintf(f, "samples:\n  all: %" PRId64 "\n  train: %" PRId64 " from %" PRId64 "\n", d->samples,
        s->split.train.count, part_first(&s->split.train));
    fprintf(
        f, "  validation: %" PRId64 " from %" PRId64 "\n", s->split.validation.count, part_first(&s->split.validation));
    if (d->label) fprintf(f, "  labels: %016" PRIx64 "\n", hash(d->label, (size_t)d->samples * sizeof *d->label));
    if (d->target)
        fprintf(f, "  targets: %016" PRIx64 "\n",
            hash(d->target, (size_t)(d->samples * d->target_width) * sizeof *d->target));
    return finish(f, &text, !ferror(f), e);
}

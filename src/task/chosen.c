#include "task/chosen.h"

#include "base/text.h"
#include "graph/dtype.h"
#include "graph/identity.h"
#include "run/outline.h"
#include "train/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MOST = 10000000, THREADS_MOST = 1024 }; // as train.batch_size and --threads

uint64_t chosen_hash(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 1099511628211u;
    return h;
}

// Writing

static void write_samples(const chosen *c, FILE *f) {
    fprintf(f, "samples:\n  all: %" PRId64 "\n  train: %" PRId64 " from %" PRId64 "\n", c->samples, c->train.count,
        c->train.first);
    fprintf(f, "  validation: %" PRId64 " from %" PRId64 "\n", c->validation.count, c->validation.first);
    if (c->train_spans) fprintf(f, "  train_spans: %016" PRIx64 "\n", c->train_spans);
    if (c->validation_spans) fprintf(f, "  validation_spans: %016" PRIx64 "\n", c->validation_spans);
    if (c->labelled) fprintf(f, "  labels: %016" PRIx64 "\n", c->labels);
    if (c->aimed) fprintf(f, "  targets: %016" PRIx64 "\n", c->targets);
}

char *chosen_write(const chosen *c) {
    char device[IDENTITY_ROOM];
    text_out t;
    text_open(&t);
    FILE *f = t.out;
    identity_plan(&c->device, device, sizeof device);
    fprintf(f, "device: %s\nprecision: %s\n", device, precision_name(c->precision));
    fprintf(f, "micro_batch: %" PRId64 "\naccumulation: %" PRId64 "\nagain: %d\nresidency: %s\n", c->micro, c->parts,
        c->again, c->host ? "host" : "device");
    if (c->tuned[0]) fprintf(f, "tuned: %s\n", c->tuned);
    if (c->threads) fprintf(f, "threads: %d\n", c->threads);
    if (c->products != PRODUCTS_AUTO) fprintf(f, "products: %s\n", settings_products_name(c->products));
    fprintf(f, "parameters: %" PRId64 "\n", c->parameters);
    if (c->summed) fprintf(f, "data_sum: %08" PRIx32 "\n", c->data_sum);
    write_samples(c, f);
    char *text = text_close(&t);
    NEED(text, "out of memory for the plan");
    return text;
}

// Reading

// Scans the value of a path by a format of at most two numbers; false where there is none such.
static bool scan(const char *text, const char *path, const char *fmt, void *a, void *b) {
    char *value = outline_value(text, path);
    bool ok = value && sscanf(value, fmt, a, b) == 1 + (b != NULL);
    free(value);
    return ok;
}

static void read_device(chosen *c, const char *text) {
    char *value = outline_value(text, "device");
    identity_read(&c->device, value ? value : "");
    free(value);
}

// Words are at most 15 letters here.
static void read_words(chosen *c, const char *text, bool *ok) {
    char word[16];
    *ok = *ok && scan(text, "precision", "%15s", word, NULL) && precision_find(word, &c->precision);
    *ok = *ok && scan(text, "residency", "%15s", word, NULL);
    c->host = *ok && strcmp(word, "host") == 0;
    if (scan(text, "products", "%15s", word, NULL)) *ok = settings_products_find(word, &c->products) && *ok;
    scan(text, "tuned", "%15s", c->tuned, NULL);
}

static bool is_device(const char *path) {
    return strcmp(path, "device") == 0;
}

// True where a text says what was read of it and nothing else. The device's line may name libraries, which older
// programs left there.
static bool is_all(const chosen *c, const char *text) {
    char differs[128], *again = chosen_write(c);
    bool all = outline_compare(text, again, is_device, differs, sizeof differs) == 0;
    free(again);
    return all;
}

bool chosen_read(chosen *c, const char *text) {
    bool ok = true;
    *c = (chosen){0};
    read_device(c, text);
    read_words(c, text, &ok);
    ok = ok && scan(text, "micro_batch", "%" SCNd64, &c->micro, NULL) && c->micro > 0 && c->micro <= BATCH_MOST;
    ok = ok && scan(text, "accumulation", "%" SCNd64, &c->parts, NULL) && c->parts > 0 && c->parts <= BATCH_MOST;
    ok = ok && scan(text, "again", "%d", &c->again, NULL) && c->again >= 0;
    scan(text, "threads", "%d", &c->threads, NULL);
    ok = ok && c->threads >= 0 && c->threads <= THREADS_MOST;
    ok = ok && scan(text, "parameters", "%" SCNd64, &c->parameters, NULL);
    c->summed = scan(text, "data_sum", "%" SCNx32, &c->data_sum, NULL);
    ok = ok && scan(text, "samples.all", "%" SCNd64, &c->samples, NULL);
    ok = ok && scan(text, "samples.train", "%" SCNd64 " from %" SCNd64, &c->train.count, &c->train.first);
    ok =
        ok && scan(text, "samples.validation", "%" SCNd64 " from %" SCNd64, &c->validation.count, &c->validation.first);
    scan(text, "samples.train_spans", "%" SCNx64, &c->train_spans, NULL);
    scan(text, "samples.validation_spans", "%" SCNx64, &c->validation_spans, NULL);
    c->labelled = scan(text, "samples.labels", "%" SCNx64, &c->labels, NULL);
    c->aimed = scan(text, "samples.targets", "%" SCNx64, &c->targets, NULL);
    return ok && is_all(c, text);
}

// Comparing

// Keys that move no bit.
static bool may_change(const char *path) {
    static const char *const keys[] = {"residency", "again", "tuned", "threads"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(path, keys[i]) == 0) return true;
    return false;
}

static bool is_of_data(const char *path) {
    return strcmp(path, "data_sum") == 0 || strncmp(path, "samples.", 8) == 0;
}

static bool is_not_of_data(const char *path) {
    return !is_of_data(path);
}

static bool may_change_or_data(const char *path) {
    return is_of_data(path) || may_change(path);
}

static bool may_change_or_data_or_device(const char *path) {
    return is_device(path) || may_change_or_data(path);
}

static int compare(const chosen *was, const chosen *is, bool (*skip)(const char *), char *text, size_t room) {
    char *old = chosen_write(was), *now = chosen_write(is);
    int n = outline_compare(old, now, skip, text, room);
    free(old);
    free(now);
    return n;
}

bool chosen_set_differs(const chosen *was, const chosen *is, char *text, size_t room) {
    text[0] = 0;
    if (was->samples != is->samples)
        snprintf(text, room, "there are %" PRId64 " samples, were %" PRId64, is->samples, was->samples);
    else if (was->labelled != is->labelled || was->labels != is->labels)
        snprintf(text, room, "labels are others");
    else if (was->aimed != is->aimed || was->targets != is->targets)
        snprintf(text, room, "targets are others");
    else if (was->summed != is->summed || was->data_sum != is->data_sum)
        snprintf(text, room, "its sum differs");
    return text[0] != 0;
}

bool chosen_data_differ(const chosen *was, const chosen *is, char *text, size_t room) {
    return chosen_set_differs(was, is, text, room) || compare(was, is, is_not_of_data, text, room) != 0;
}

int chosen_differs(const chosen *was, const chosen *is, char *text, size_t room) {
    char data[256];
    bool same = identity_same(&was->device, &is->device);
    int n = compare(was, is, same ? may_change_or_data_or_device : may_change_or_data, text, room);
    size_t used = strlen(text);
    if (!chosen_data_differ(was, is, data, sizeof data)) return n;
    snprintf(text + used, room - used, "%sthe data have changed: %s", n ? "; " : "", data);
    return n + 1;
}

// A driver is named by itself: at the end of a long line of a device it would not be seen.
int chosen_changes(const chosen *was, const chosen *is, char *text, size_t room) {
    char old[128], now[128];
    bool same = identity_same(&was->device, &is->device);
    int n = compare(was, is, same ? is_device : NULL, text, room);
    size_t used = strlen(text);
    identity_driver(&was->device, old, sizeof old);
    identity_driver(&is->device, now, sizeof now);
    if (!same || strcmp(old, now) == 0) return n;
    snprintf(text + used, room - used, "%sdevice has %s, had %s", n ? "; " : "", now, old);
    return n + 1;
}

#include "run/fingerprint.h"

#include "run/safetensors.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_meant(const char *name, const char *prefix) {
    static const char *const others[] = {"moment1.", "moment2.", "best.", "state.", "trainer.", "scaler."};
    if (*prefix) return begins(name, prefix);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (begins(name, others[i])) return false;
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const safetensors_entry *const *)a)->name, (*(const safetensors_entry *const *)b)->name);
}

// FNV-1a
static uint64_t add(uint64_t h, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 1099511628211u;
    return h;
}

uint64_t fingerprint(const char *path, const char *prefix) {
    err e;
    uint64_t h = 14695981039346656037u;
    safetensors *s = safetensors_open(path, &e);
    support_ok(s != NULL, &e);
    const safetensors_entry **list = calloc((size_t)safetensors_count(s) + 1, sizeof(const safetensors_entry *));
    size_t n = 0;
    assert_non_null(list);
    for (int i = 0; i < safetensors_count(s); i++)
        if (is_meant(safetensors_at(s, i)->name, prefix)) list[n++] = safetensors_at(s, i);
    if (!n) fail_msg("%s: has no tensor %s*", path, prefix);
    qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        size_t skip = strcmp(list[i]->name, "trainer.values") == 0 ? sizeof(double) : 0; // seconds
        h = add(h, list[i]->name, strlen(list[i]->name) + 1);
        h = add(h, list[i]->dim, (size_t)list[i]->rank * sizeof *list[i]->dim);
        h = add(h, (const char *)list[i]->data + skip, list[i]->bytes - skip);
    }
    free(list);
    safetensors_close(s);
    return h;
}

#include "base/arena.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 * 1024, ALIGN = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char data[];
};

void arena_init(arena *a) {
    a->chunks = NULL;
}

void arena_done(arena *a) {
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
}

static struct arena_chunk *chunk_new(size_t size, struct arena_chunk *next) {
    struct arena_chunk *c = calloc(1, sizeof *c + size);
    NEED(c, "out of memory for %zu bytes of descriptions", size);
    c->next = next;
    c->size = size;
    return c;
}

void *arena_take(arena *a, size_t bytes) {
    CHECK(bytes <= SIZE_MAX / 2, "%zu bytes asked of an arena", bytes);
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!a->chunks || a->chunks->size - a->chunks->used < bytes)
        a->chunks = chunk_new(bytes > CHUNK ? bytes : CHUNK, a->chunks);
    void *p = a->chunks->data + a->chunks->used;
    a->chunks->used += bytes;
    return p;
}

void *arena_array(arena *a, size_t count, size_t size) {
    CHECK(!size || count <= SIZE_MAX / 2 / size, "%zu items of %zu bytes asked of an arena", count, size);
    return arena_take(a, count * size);
}

char *arena_text(arena *a, const char *text) {
    size_t n = strlen(text) + 1;
    return memcpy(arena_take(a, n), text, n);
}

char *arena_format(arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    CHECK(n >= 0, "bad format %s", fmt);
    char *text = arena_take(a, (size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}

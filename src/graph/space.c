#include "graph/space.h"

#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    size_t at, bytes;
} reservation;

struct space {
    const device *d;
    queue *q;
    space *outer; // whose reservation its memory is, or NULL
    unsigned char *memory;
    size_t bytes, used, most;
    reservation *list; // by address
    int count, room;
    pthread_mutex_t mutex;
};

static space *made(const space *as, err *e) {
    space *s = calloc(1, sizeof *s);
    if (!s) {
        err_run(e, "out of memory for a space");
        return NULL;
    }
    *s = *as;
    pthread_mutex_init(&s->mutex, NULL);
    return s;
}

space *space_new(const device *d, queue *q, size_t bytes, err *e) {
    space as = {.d = d, .q = q, .bytes = space_aligned(bytes)};
    as.memory = d->allocate(q, as.bytes, e);
    space *s = as.memory ? made(&as, e) : NULL;
    if (!s && as.memory) d->release(q, as.memory, as.bytes);
    return s;
}

space *space_within(space *outer, const char *name, size_t bytes, err *e) {
    space as = {.d = outer->d, .q = outer->q, .outer = outer, .bytes = space_aligned(bytes)};
    as.memory = space_take(outer, name, as.bytes, e);
    space *s = as.memory ? made(&as, e) : NULL;
    if (!s) space_give(outer, as.memory);
    return s;
}

void space_free(space *s) {
    if (!s) return;
    CHECK(!s->count, "a space ends while %s is reserved in it", s->list[0].name);
    if (s->outer)
        space_give(s->outer, s->memory);
    else
        s->d->release(s->q, s->memory, s->bytes);
    pthread_mutex_destroy(&s->mutex);
    free(s->list);
    free(s);
}

// The place among the reservations before which a free stretch of so many bytes lies, and its offset; -1: there is
// none.
static int find_gap(const space *s, size_t bytes, size_t *at) {
    size_t end = 0;
    for (int i = 0; i <= s->count; i++) {
        size_t next = i < s->count ? s->list[i].at : s->bytes;
        if (next - end >= bytes) {
            *at = end;
            return i;
        }
        if (i < s->count) end = s->list[i].at + s->list[i].bytes;
    }
    return -1;
}

static bool grow(space *s, err *e) {
    if (s->count < s->room) return true;
    int room = s->room ? 2 * s->room : 16;
    reservation *list = realloc(s->list, (size_t)room * sizeof *list);
    if (!list) return err_run(e, "out of memory for %d reservations", room);
    s->list = list;
    s->room = room;
    return true;
}

static void *take(space *s, const char *name, size_t bytes, err *e) {
    size_t at = 0;
    if (!grow(s, e)) return NULL;
    int i = find_gap(s, bytes, &at);
    if (i < 0) {
        err_run(e, "%s needs %.1f MB, and of %.1f MB planned in all %.1f MB are taken", name, (double)bytes / 1e6,
            (double)s->bytes / 1e6, (double)s->used / 1e6);
        return NULL;
    }
    memmove(s->list + i + 1, s->list + i, (size_t)(s->count - i) * sizeof *s->list);
    s->list[i] = (reservation){name, at, bytes};
    s->count++;
    s->used += bytes;
    if (s->used > s->most) s->most = s->used;
    return s->memory + at;
}

void *space_take(space *s, const char *name, size_t bytes, err *e) {
    CHECK(bytes, "a reservation of no bytes for %s", name);
    pthread_mutex_lock(&s->mutex);
    void *at = take(s, name, space_aligned(bytes), e);
    pthread_mutex_unlock(&s->mutex);
    return at;
}

void space_give(space *s, void *at) {
    if (!at) return;
    pthread_mutex_lock(&s->mutex);
    int i = 0;
    while (i < s->count && s->memory + s->list[i].at != (unsigned char *)at) i++;
    CHECK(i < s->count, "memory that is not reserved is given back");
    s->used -= s->list[i].bytes;
    memmove(s->list + i, s->list + i + 1, (size_t)(s->count - i - 1) * sizeof *s->list);
    s->count--;
    pthread_mutex_unlock(&s->mutex);
}

size_t space_bytes(const space *s) {
    return s->bytes;
}

static size_t locked(space *s, const size_t *value) {
    pthread_mutex_lock(&s->mutex);
    size_t v = *value;
    pthread_mutex_unlock(&s->mutex);
    return v;
}

size_t space_used(space *s) {
    return locked(s, &s->used);
}

size_t space_most(space *s) {
    return locked(s, &s->most);
}

const device *space_device(const space *s) {
    return s->d;
}

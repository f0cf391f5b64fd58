#include "train/pinned.h"

static void *take(void *arg, size_t bytes) {
    const pinned *p = arg;
    return p->d->pin(p->q, bytes);
}

static void give(void *arg, void *memory, size_t bytes) {
    const pinned *p = arg;
    p->d->unpin(p->q, memory, bytes);
}

loader_memory pinned_memory(pinned *p) {
    return (loader_memory){take, give, p};
}

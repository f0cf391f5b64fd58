#include "watch/web/guard.h"

#include "base/clock.h"
#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

// Seconds for a request, for an answer, and for a request where places are short or nearly all are taken.
static const double request_most = 15, answer_most = 120, short_most = 1, full_most = 0.25;

struct guard_place {
    int fd; // -1: free
    guard_state state;
    double since;
};

struct guard {
    pthread_mutex_t lock; // of all places
    int places, taken;
    guard_place *place;
};

guard *guard_new(int places) {
    guard *g = calloc(1, sizeof *g);
    NEED(g && (g->place = calloc((size_t)places, sizeof *g->place)), "out of memory for connections");
    pthread_mutex_init(&g->lock, NULL);
    g->places = places;
    for (int i = 0; i < places; i++) g->place[i].fd = -1;
    return g;
}

void guard_free(guard *g) {
    if (!g) return;
    pthread_mutex_destroy(&g->lock);
    free(g->place);
    free(g);
}

guard_place *guard_enter(guard *g, int fd) {
    guard_place *p = NULL;
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < g->places && !p; i++)
        if (g->place[i].fd < 0) p = &g->place[i];
    if (p) {
        *p = (guard_place){fd, GUARD_WAITS, clock_seconds()};
        g->taken++;
    }
    pthread_mutex_unlock(&g->lock);
    return p;
}

void guard_leave(guard *g, guard_place *p) {
    if (!p) return;
    pthread_mutex_lock(&g->lock);
    p->fd = -1;
    g->taken--;
    pthread_mutex_unlock(&g->lock);
}

void guard_set(guard *g, guard_place *p, guard_state to) {
    if (!p) return;
    pthread_mutex_lock(&g->lock);
    p->state = to;
    p->since = clock_seconds();
    pthread_mutex_unlock(&g->lock);
}

// The descriptor is open as long as its place is taken: both change under the lock.
void guard_tick(guard *g, double now) {
    pthread_mutex_lock(&g->lock);
    const double most[] = {[GUARD_WAITS] = g->taken > g->places * 7 / 8   ? full_most
                                           : g->taken > g->places * 3 / 4 ? short_most
                                                                          : request_most,
        [GUARD_ANSWERS] = answer_most,
        [GUARD_STREAMS] = 1e300};
    for (int i = 0; i < g->places; i++) {
        guard_place *p = &g->place[i];
        if (p->fd >= 0 && now - p->since > most[p->state]) shutdown(p->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&g->lock);
}

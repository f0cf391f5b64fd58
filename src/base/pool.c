// Workers wait for the generation number to change: a short spin first, because kernels follow each other within
// microseconds, then a condition variable, so that an idle pool costs nothing.
//
// Invariants:
// 1. A worker is counted as inside before it looks whether a call is open, and the caller closes a call before it waits
//    for nobody to be inside. So a worker that is inside an open call has its caller wait, and one that comes too late,
//    because the system ran something else in its place, holds nobody up.
// 2. A call (fn, arg, items) changes while no call is open and nobody is inside; it is never read after pool_run
//    returns.
// 3. A worker is counted as asleep before it looks at the generation for the last time, and the caller looks for
//    sleepers after it has moved the generation on. So none sleeps through a call unless there is no item for it.
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { SPINS = 4000, THREADS_MOST = 1024 };

struct pool {
    int threads;
    pthread_t *ids;
    pthread_mutex_t lock;
    pthread_cond_t start;
    atomic_uint generation;
    atomic_int inside; // workers that look at this call, or work on it
    atomic_int asleep;
    atomic_bool open; // there is a call
    atomic_bool stop;
    atomic_flag taken; // a call is running
    atomic_llong next;
    int64_t items;
    pool_fn *fn;
    void *arg;
};

typedef struct {
    pool *p;
    int worker;
} seat;

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

static void drain(pool *p, int worker) {
    for (;;) {
        long long item = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (item >= p->items) return;
        p->fn(p->arg, item, worker);
    }
}

static unsigned await(pool *p, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        unsigned now = atomic_load_explicit(&p->generation, memory_order_acquire);
        if (now != seen) return now;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (atomic_load(&p->generation) == seen) pthread_cond_wait(&p->start, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    unsigned now = atomic_load(&p->generation);
    pthread_mutex_unlock(&p->lock);
    return now;
}

static void *work(void *arg) {
    seat me = *(seat *)arg;
    free(arg);
    unsigned seen = 0;
    for (;;) {
        seen = await(me.p, seen);
        if (atomic_load(&me.p->stop)) return NULL;
        atomic_fetch_add(&me.p->inside, 1);
        if (atomic_load(&me.p->open)) drain(me.p, me.worker);
        atomic_fetch_sub(&me.p->inside, 1);
    }
}

// Wakes `wanted` workers, as far as so many sleep; those that spin see for themselves.
static void wake(pool *p, int64_t wanted) {
    atomic_fetch_add(&p->generation, 1);
    int64_t asleep = atomic_load(&p->asleep);
    if (!asleep) return;
    pthread_mutex_lock(&p->lock);
    if (wanted < asleep)
        for (int64_t i = 0; i < wanted; i++) pthread_cond_signal(&p->start);
    else
        pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
}

// The share of processors that a container's quota leaves, or `most` where there is none.
static int quota(int most) {
    long long max, period;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (!f) return most;
    int got = fscanf(f, "%lld %lld", &max, &period);
    fclose(f);
    if (got != 2 || max <= 0 || period <= 0) return most;
    long long n = (max + period - 1) / period;
    return n < most ? (int)n : most;
}

int pool_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int n = CPU_COUNT(&set);
    return quota(n > 0 ? n : 1);
}

static bool seat_worker(pool *p, int worker) {
    seat *s = malloc(sizeof *s);
    if (!s) return false;
    *s = (seat){p, worker};
    if (pthread_create(&p->ids[worker], NULL, work, s) == 0) return true;
    free(s);
    return false;
}

pool *pool_new(int threads, err *e) {
    if (threads <= 0) threads = pool_processors();
    if (threads > THREADS_MOST) threads = THREADS_MOST;
    pool *p = calloc(1, sizeof *p);
    if (p) p->ids = calloc((size_t)threads, sizeof *p->ids);
    if (!p || !p->ids) {
        free(p);
        err_run(e, "out of memory for a pool of %d threads", threads);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    for (p->threads = 1; p->threads < threads; p->threads++) {
        if (seat_worker(p, p->threads)) continue;
        err_run(e, "cannot start thread %d of %d; use fewer threads", p->threads + 1, threads);
        pool_free(p);
        return NULL;
    }
    return p;
}

void pool_free(pool *p) {
    if (!p) return;
    atomic_store(&p->stop, true);
    wake(p, p->threads);
    for (int i = 1; i < p->threads; i++) pthread_join(p->ids[i], NULL);
    pthread_cond_destroy(&p->start);
    pthread_mutex_destroy(&p->lock);
    free(p->ids);
    free(p);
}

int pool_threads(const pool *p) {
    return p ? p->threads : 1;
}

void pool_run(pool *p, int64_t items, pool_fn *fn, void *arg) {
    bool shares =
        p && p->threads > 1 && items > 1 && !atomic_flag_test_and_set_explicit(&p->taken, memory_order_acquire);
    if (!shares) {
        for (int64_t i = 0; i < items; i++) fn(arg, i, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->items = items;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_store(&p->open, true);
    wake(p, items - 1);
    drain(p, 0);
    atomic_store(&p->open, false);
    for (int i = 0; atomic_load(&p->inside) > 0; i++) i < SPINS ? relax() : (void)sched_yield();
    atomic_flag_clear_explicit(&p->taken, memory_order_release);
}

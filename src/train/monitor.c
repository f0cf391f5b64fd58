#include "train/monitor.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const double warn_at = 0.90, calm_below = 0.85;

// Seconds between two readings below which work done in between says nothing.
static const double between_least = 0.01;

// A sum over the samples that have a value.
typedef struct {
    double sum;
    int64_t count;
} mean;

struct monitor {
    monitor_options o;
    pthread_t thread;
    bool joined;
    pthread_mutex_t lock; // of `stop` alone
    pthread_cond_t wake;
    bool stop;
    // the ring: one thread puts, one takes
    db_sample_row ring[MONITOR_RING];
    atomic_uint_fast64_t put, taken; // samples so far
    atomic_int_fast64_t lost;
    // the thread's own
    double busy, read_at; // of the last reading; busy is negative where there is none
    // the taker's own
    bool limit_near, device_near;
    db_gauges all;
    mean utilisation, power;
};

// The thread

static double time_of_day(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// The device counts seconds of work; utilisation is their share of the time since the last reading.
static double find_utilisation(monitor *m, const device_readings *r) {
    double now = clock_seconds(), passed = now - m->read_at, was = m->busy;
    m->busy = r->busy;
    m->read_at = now;
    if (r->utilisation >= 0 || r->busy < 0 || was < 0 || passed < between_least) return r->utilisation;
    return fmin(100, 100 * (r->busy - was) / passed);
}

static void put(monitor *m, const db_sample_row *row) {
    uint64_t at = atomic_load_explicit(&m->put, memory_order_relaxed);
    if (at - atomic_load_explicit(&m->taken, memory_order_acquire) == MONITOR_RING) {
        atomic_fetch_add_explicit(&m->lost, 1, memory_order_relaxed);
        return;
    }
    m->ring[at % MONITOR_RING] = *row;
    atomic_store_explicit(&m->put, at + 1, memory_order_release);
}

static void read_once(monitor *m) {
    device_readings r;
    if (!m->o.device->readings(m->o.queue, &r)) return;
    db_sample_row row = {
        .time = time_of_day(),
        .memory_used = r.used,
        .memory_total = r.total,
        .memory_process = r.process,
        .memory_others = r.others,
        .memory_most = r.most,
        .processes = r.processes,
        .utilisation = find_utilisation(m, &r),
        .temperature = r.temperature,
        .power = r.power,
        .clock = r.clock,
        .memory_clock = r.memory_clock,
    };
    put(m, &row);
}

// Until the next reading is due; false once the monitor is to stop.
static bool wait_for_next(monitor *m) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    double seconds = floor(m->o.every);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((m->o.every - seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&m->lock);
    while (!m->stop && pthread_cond_timedwait(&m->wake, &m->lock, &until) == 0) continue;
    bool go_on = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

static void *watch(void *arg) {
    monitor *m = arg;
    do read_once(m);
    while (wait_for_next(m));
    read_once(m);
    return NULL;
}

// Signals are for the thread that trains: this one is started with all of them blocked.
static bool start_thread(monitor *m) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&m->thread, NULL, watch, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

monitor *monitor_start(const monitor_options *o, err *e) {
    CHECK(o->every > 0, "a monitor every %g s", o->every);
    monitor *m = calloc(1, sizeof *m);
    if (!m) {
        err_run(e, "out of memory for the monitor");
        return NULL;
    }
    m->o = *o;
    m->busy = -1;
    m->all = (db_gauges){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wake, &steady);
    pthread_condattr_destroy(&steady);
    if (start_thread(m)) return m;
    m->joined = true;
    err_run(e, "cannot start the monitor's thread; the run goes on without it");
    monitor_free(m);
    return NULL;
}

void monitor_stop(monitor *m) {
    if (!m || m->joined) return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    m->joined = true;
}

void monitor_free(monitor *m) {
    if (!m) return;
    monitor_stop(m);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

// The taker

// True if this sample's use comes near its limit and the one before did not.
static bool comes_near(bool *near, double use, double most) {
    bool was = *near;
    if (use < 0 || most <= 0) return false;
    *near = use >= warn_at * most || (was && use >= calm_below * most);
    return *near && !was;
}

// "; this process holds 11000.0 MB, 2 others 3000.0 MB".
static void write_holders(const db_sample_row *s, char *text, size_t room) {
    char others[32] = "others";
    if (s->processes > 0) snprintf(others, sizeof others, "%.0f other%s", s->processes, s->processes > 1 ? "s" : "");
    if (s->memory_process >= 0 && s->memory_others >= 0)
        snprintf(text, room, "; this process holds %.1f MB, %s %.1f MB", s->memory_process / 1e6, others,
            s->memory_others / 1e6);
    else
        snprintf(text, room, "; who holds it is not known");
}

// A sample has one line: where both come near at once, the device is told of with the next.
static void judge(monitor *m, const db_sample_row *s, char *warning, size_t room) {
    const char *of = m->o.device->host_memory ? "machine" : "card";
    double limit = (double)m->o.limit;
    char holders[128];
    bool own = comes_near(&m->limit_near, s->memory_process, limit);
    bool all = !own && comes_near(&m->device_near, s->memory_used, s->memory_total);
    write_holders(s, holders, sizeof holders);
    warning[0] = 0;
    if (own)
        snprintf(warning, room, "memory: %.0f %% of the limit of %.1f MB are in use%s", 100 * s->memory_process / limit,
            limit / 1e6, holders);
    else if (all)
        snprintf(warning, room, "memory: %.0f %% of the %s's %.1f MB are in use%s",
            100 * s->memory_used / s->memory_total, of, s->memory_total / 1e6, holders);
}

static void keep_most(double *most, double v) {
    if (v >= 0) *most = fmax(*most, v); // NAN gives way
}

static void add_to(mean *m, double v, double *now) {
    if (v < 0) return;
    m->sum += v;
    *now = m->sum / (double)++m->count;
}

static void add_up(monitor *m, const db_sample_row *s) {
    db_gauges *g = &m->all;
    g->samples++;
    keep_most(&g->memory_process, s->memory_process);
    keep_most(&g->memory_others, s->memory_others);
    keep_most(&g->memory_used, s->memory_used);
    keep_most(&g->memory_total, s->memory_total);
    keep_most(&g->utilisation, s->utilisation);
    keep_most(&g->temperature, s->temperature);
    keep_most(&g->power, s->power);
    add_to(&m->utilisation, s->utilisation, &g->utilisation_mean);
    add_to(&m->power, s->power, &g->power_mean);
}

bool monitor_take(monitor *m, db_sample_row *row, char *warning, size_t room) {
    if (!m) return false;
    uint64_t at = atomic_load_explicit(&m->taken, memory_order_relaxed);
    if (at == atomic_load_explicit(&m->put, memory_order_acquire)) return false;
    *row = m->ring[at % MONITOR_RING];
    atomic_store_explicit(&m->taken, at + 1, memory_order_release);
    add_up(m, row);
    judge(m, row, warning, room);
    return true;
}

db_gauges monitor_gauges(const monitor *m) {
    return m ? m->all : (db_gauges){0};
}

int64_t monitor_lost(const monitor *m) {
    return m ? atomic_load_explicit(&m->lost, memory_order_relaxed) : 0;
}

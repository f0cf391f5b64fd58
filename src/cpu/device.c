// Queues of the CPU device: a pool of threads and a table of kernels. Playing a recording runs its calls one after the
// other on the calling thread, which shares a call's items out to the pool where that is faster (pace.h).
#include "cpu/cpu.h"

#include "base/clock.h"
#include "base/machine.h"
#include "base/pool.h"
#include "cpu/pace.h"
#include "cpu/table.h"
#include "ops/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct queue {
    pool *pool;
    bool shares;    // the pool is another queue's
    int processors; // that this process may use
    const char *isa;
    const kernel *table[OP_COUNT];
};

struct recording {
    call *calls;
    int count;
    pace *pace; // [count], or NULL: there is one thread
};

const char *const *cpu_instruction_sets(void) {
    static const char *const all[] = {"avx512", "avx2", "base", NULL};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return all;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return all + 1;
#endif
    return all + 2;
}

static bool choose_isa(queue *q, const char *wanted, err *e) {
    const char *const *have = cpu_instruction_sets();
    q->isa = have[0];
    if (!wanted) return true;
    for (; *have; have++) {
        q->isa = *have;
        if (strcmp(*have, wanted) == 0) return true;
    }
    return err_input(e, "--isa %s: not one of the kernels that this processor can run; use %s or leave it open", wanted,
        cpu_instruction_sets()[0]);
}

static queue *queue_new(const queue_options *o, err *e) {
    queue *q = calloc(1, sizeof *q);
    if (!q) {
        err_run(e, "out of memory for a queue");
        return NULL;
    }
    q->shares = o->beside != NULL;
    if (choose_isa(q, o->isa, e)) q->pool = q->shares ? o->beside->pool : pool_new(o->threads, e);
    q->processors = pool_processors();
    if (q->pool) return q;
    free(q);
    return NULL;
}

static void table_copy(queue *q, const kernel *const *from) {
    memcpy(q->table, from, sizeof q->table);
}

static queue *open_fast(const queue_options *o, err *e) {
    queue *q = queue_new(o, e);
    if (!q) return NULL;
#if defined(__x86_64__)
    if (strcmp(q->isa, "avx512") == 0) return cpu_fill_table_avx512(q->table), q;
    if (strcmp(q->isa, "avx2") == 0) return cpu_fill_table_avx2(q->table), q;
#endif
    cpu_fill_table_base(q->table);
    return q;
}

static queue *open_plain(const queue_options *o, err *e) {
    queue *q = queue_new(o, e);
    if (!q) return NULL;
#if defined(__x86_64__)
    if (strcmp(q->isa, "avx512") == 0) return table_copy(q, ops_table_avx512), q;
    if (strcmp(q->isa, "avx2") == 0) return table_copy(q, ops_table_avx2), q;
#endif
    table_copy(q, ops_table_base);
    return q;
}

static queue *open_double(const queue_options *o, err *e) {
    queue *q = queue_new(o, e);
    if (!q) return NULL;
    q->isa = "f64";
    table_copy(q, ops_table_f64);
    return q;
}

static void queue_close(queue *q) {
    if (!q) return;
    if (!q->shares) pool_free(q->pool);
    free(q);
}

static const kernel *const *kernels(const queue *q) {
    return q->table;
}

// The table knows whether it is of doubles; everything else is fp32.
static bool computes(const queue *q, precision p) {
    return p == (q->table[0] == ops_table_f64[0] ? PRECISION_FP64 : PRECISION_FP32);
}

static void identify(const queue *q, device_identity *i) {
    *i = (device_identity){.name = "cpu", .threads = pool_threads(q->pool)};
    snprintf(i->isa, sizeof i->isa, "%s", q->isa);
}

// Memory

// Memory that the system says is available, within the limits of containers.
static size_t available(const queue *q) {
    double left = machine_look("").available;
    (void)q;
    return left < 0 ? (size_t)1e18 : (size_t)left;
}

// A process has pages that are its own, and those of files, of which the mapped data are the most.
static bool readings(const queue *q, device_readings *r) {
    machine_memory m = machine_look("");
    struct timespec t;
    *r = device_shows_nothing();
    r->total = m.total;
    r->used = m.used;
    r->process = m.anonymous;
    r->most = m.most;
    if (r->process >= 0 && r->used >= 0) r->others = r->used > r->process ? r->used - r->process : 0;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0)
        r->busy = ((double)t.tv_sec + (double)t.tv_nsec * 1e-9) / q->processors;
    return r->used >= 0 || r->process >= 0;
}

// The system counts a process, not its devices.
static bool memory(const queue *q, device_memory *m) {
    (void)q;
    *m = (device_memory){0};
    return false;
}

// Fresh pages from the system: zeroed, page-aligned, and with huge pages where the system offers them.
static void *allocate(queue *q, size_t bytes, err *e) {
    (void)q;
    size_t size = bytes ? bytes : 1;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        err_run(e, "cannot allocate %.1f MB of memory; use a smaller batch_size", (double)bytes / 1e6);
        return NULL;
    }
    madvise(p, size, MADV_HUGEPAGE);
    return p;
}

static void release(queue *q, void *slab, size_t bytes) {
    (void)q;
    munmap(slab, bytes ? bytes : 1);
}

static bool copy(queue *q, void *to, const void *from, size_t bytes, err *e) {
    (void)q;
    (void)e;
    if (bytes) memcpy(to, from, bytes);
    return true;
}

static void *pin(queue *q, size_t bytes) {
    err unused;
    return allocate(q, bytes, &unused);
}

// Playing has ended when it returns, so there is nothing to run beside.
static bool feed(queue *q, int lane, void *to, const void *from, size_t bytes, err *e) {
    (void)lane;
    return copy(q, to, from, bytes, e);
}

static bool fed(queue *q, int lane, err *e) {
    (void)q;
    (void)lane;
    (void)e;
    return true;
}

static bool fill(queue *q, void *to, int byte, size_t bytes, err *e) {
    (void)q;
    (void)e;
    memset(to, byte, bytes);
    return true;
}

static recording *record(queue *q, room *r, call *calls, int count, err *e) {
    recording *made = malloc(sizeof *made);
    bool many = pool_threads(q->pool) > 1;
    pace *pace = many ? calloc((size_t)count + 1, sizeof *pace) : NULL;
    (void)r;
    if (!made || (many && !pace)) {
        free(made);
        free(pace);
        err_run(e, "out of memory for a recording");
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        CHECK(!calls[i].backward || q->table[calls[i].op]->backward, "%s has no backward", calls[i].name);
        calls[i].pool = q->pool;
    }
    *made = (recording){calls, count, pace};
    return made;
}

static void forget(queue *q, recording *r) {
    (void)q;
    if (r) free(r->pace);
    free(r);
}

static void run(const queue *q, const call *c) {
    const kernel *k = q->table[c->op];
    c->backward ? k->backward(c) : k->forward(c);
}

// A call shared out to the threads, or done by this one, as its pace has it.
static void run_paced(const queue *q, call *c, pace *p) {
    bool looks = pace_looks(p);
    double began = looks ? clock_seconds() : 0;
    c->pool = pace_shares(p) ? q->pool : NULL;
    run(q, c);
    pace_played(p, looks ? clock_seconds() - began : 0);
}

static bool play(queue *q, recording *r, err *e) {
    (void)e;
    for (int i = 0; i < r->count; i++) r->pace ? run_paced(q, &r->calls[i], &r->pace[i]) : run(q, &r->calls[i]);
    return true;
}

static bool finish(queue *q, err *e) {
    (void)q;
    (void)e;
    return true;
}

#define CPU_DEVICE(label, opener)                                                                                      \
    {                                                                                                                  \
        .name = label, .host_memory = true, .open = opener, .close = queue_close, .kernels = kernels,                  \
        .computes = computes, .identify = identify, .available = available, .memory = memory, .readings = readings,    \
        .allocate = allocate, .release = release, .write = copy, .read = copy, .fill = fill, .pin = pin,               \
        .unpin = release, .feed = feed, .fed = fed, .record = record, .forget = forget, .play = play, .sync = finish   \
    }

const device cpu_device = CPU_DEVICE("cpu", open_fast);
const device cpu_plain_device = CPU_DEVICE("cpu-plain", open_plain);
const device cpu_double_device = CPU_DEVICE("cpu-double", open_double);

// Nothing is allocated after planning: this binary's calls of the allocators, of its own code and of what is linked
// into it, go through the counters below (the linker's --wrap). Threads of the pool are counted like the caller.
#include "base/pool.h"
#include "cpu/cpu.h"
#include "support.h"
#include "train/monitor.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static atomic_bool counting;
static atomic_int calls;

static void count(void) {
    if (atomic_load(&counting)) atomic_fetch_add(&calls, 1);
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
int __real_posix_memalign(void **p, size_t align, size_t bytes);
void *__real_memalign(size_t align, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);
void *__wrap_memalign(size_t align, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t bytes) {
    count();
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    count();
    return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes) {
    count();
    return __real_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes) {
    count();
    return __real_aligned_alloc(align, bytes);
}

int __wrap_posix_memalign(void **p, size_t align, size_t bytes) {
    count();
    return __real_posix_memalign(p, align, bytes);
}

void *__wrap_memalign(size_t align, size_t bytes) {
    count();
    return __real_memalign(align, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    count();
    return __real_mmap(at, bytes, protection, flags, fd, offset);
}

static int calls_since(void) {
    atomic_store(&counting, false);
    return atomic_exchange(&calls, 0);
}

// The counters are only worth something if they see an allocation inside the library.
static void counters_see_the_library(void **state) {
    (void)state;
    rig r;
    atomic_store(&counting, true);
    rig_open(&r, &cpu_device, 2, "");
    int made = calls_since();
    atomic_store(&counting, true);
    trainer *t = rig_trainer(&r);
    int planned = calls_since();
    print_message("%d calls to make a job, %d to make a trainer\n", made, planned);
    assert_true(made >= 10 && planned >= 5);
    trainer_free(t);
    rig_close(&r);
}

static void allocate_one(void *arg, int64_t item, int worker) {
    (void)arg;
    (void)item;
    (void)worker;
    void *volatile p = malloc(16); // volatile, or the pair may be left out
    free(p);
}

static void counters_see_the_pool(void **state) {
    (void)state;
    err e;
    pool *p = pool_new(3, &e);
    support_ok(p != NULL, &e);
    atomic_store(&counting, true);
    pool_run(p, 1000, allocate_one, NULL);
    assert_int_equal(calls_since(), 1000);
    pool_free(p);
}

static void play_steps(trainer *t, int steps) {
    err e;
    for (int i = 0; i < steps; i++) {
        support_ok(support_play(t, PASS_FIRST, &e), &e);
        support_ok(support_play(t, PASS_NEXT, &e), &e);
        support_ok(support_play(t, PASS_UPDATE, &e), &e);
    }
}

static void check_nothing_allocated(const char *keys, int threads) {
    err e;
    rig r;
    static score s;
    rig_open(&r, &cpu_device, threads, keys);
    trainer *t = rig_trainer(&r);
    solo_step begin = {.seed = 1, .count = (uint64_t)r.split.train.count, .epoch = 1, .shuffle = 1, .lr = 1e-3f};
    support_ok(support_step_write(t, &begin, &e), &e);
    atomic_store(&counting, true);
    play_steps(t, 3);
    bool ok = trainer_evaluate(t, &r.split.validation, &s, &e);
    int seen = calls_since();
    support_ok(ok, &e);
    if (seen) fail_msg("%s, %d threads: %d allocations in three steps and an evaluation", keys, threads, seen);
    assert_int_equal(s.samples, r.split.validation.count);
    trainer_free(t);
    rig_close(&r);
}

static void steps_allocate_nothing(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        check_nothing_allocated("model.kind=lstm model.layers=2 train.class_weights=balanced", threads);
        check_nothing_allocated("model.kind=mlp model.activation=gelu", threads);
        check_nothing_allocated("model.kind=mlp data.residency=host data.scale=standard", threads);
        check_nothing_allocated("model.kind=mlp train.optimizer.kind=sgd train.batch_size=7", threads);
    }
}

// Nor does the thread that watches them.
static void the_monitor_allocates_nothing(void **state) {
    (void)state;
    err e;
    db_sample_row row;
    char warning[256];
    int taken = 0;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    monitor *m = monitor_start(&(monitor_options){.device = &cpu_device, .queue = q, .every = 1e-3, .limit = 1}, &e);
    support_ok(m != NULL, &e);
    atomic_store(&counting, true);
    while (taken < 20) {
        taken += monitor_take(m, &row, warning, sizeof warning);
        usleep(100);
    }
    assert_int_equal(calls_since(), 0);
    monitor_free(m);
    cpu_device.close(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_see_the_library),
        cmocka_unit_test(counters_see_the_pool),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(the_monitor_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The pool: every item once, whatever the sizes; what one call wrote, the next sees.
#include "base/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static pool *open_pool(int threads) {
    err e = {0};
    pool *p = pool_new(threads, &e);
    if (!p) fail_msg("%s", e.text);
    return p;
}

typedef struct {
    unsigned char *times; // [items]; plain memory: two workers on one item would be a race
    int64_t items;
    int threads;
    atomic_int wrong;
} tally;

static void count_item(void *arg, int64_t item, int worker) {
    tally *t = arg;
    if (item < 0 || item >= t->items || worker < 0 || worker >= t->threads) {
        atomic_fetch_add(&t->wrong, 1);
        return;
    }
    t->times[item]++;
}

static void check_once(pool *p, int64_t items) {
    tally t = {calloc((size_t)items + 1, 1), items, pool_threads(p), 0};
    assert_non_null(t.times);
    pool_run(p, items, count_item, &t);
    assert_int_equal(atomic_load(&t.wrong), 0);
    for (int64_t i = 0; i < items; i++) assert_int_equal(t.times[i], 1);
    free(t.times);
}

static void every_item_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 64, 257, 1000, 20011};
    for (int threads = 1; threads <= 9; threads++) {
        pool *p = open_pool(threads);
        assert_int_equal(pool_threads(p), threads);
        for (int round = 0; round < 5; round++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_once(p, sizes[i]);
        pool_free(p);
    }
}

typedef struct {
    int64_t seen[8], count;
} order;

static void note_order(void *arg, int64_t item, int worker) {
    order *o = arg;
    assert_int_equal(worker, 0);
    o->seen[o->count++] = item;
}

static void one_thread_and_no_pool_run_in_order(void **state) {
    (void)state;
    pool *one = open_pool(1);
    for (int k = 0; k < 2; k++) {
        order o = {.count = 0};
        pool_run(k ? one : NULL, 8, note_order, &o);
        assert_int_equal(o.count, 8);
        for (int i = 0; i < 8; i++) assert_int_equal(o.seen[i], i);
        check_once(k ? one : NULL, 100);
    }
    assert_int_equal(pool_threads(NULL), 1);
    pool_free(one);
    pool_free(NULL);
}

// Each call reads what the one before it wrote, and what the caller wrote in between: plain memory throughout.
enum { CELLS = 64 };

typedef struct {
    int from[CELLS], to[CELLS], added;
} relay;

static void pass_on(void *arg, int64_t item, int worker) {
    relay *r = arg;
    (void)worker;
    r->to[item] = r->from[(item + 1) % CELLS] + r->added;
}

static void writes_are_seen(void **state) {
    (void)state;
    pool *p = open_pool(4);
    relay r = {.added = 0};
    int sum = 0;
    for (int round = 1; round <= 2000; round++) {
        r.added = round % 7;
        sum += r.added;
        pool_run(p, CELLS, pass_on, &r);
        memcpy(r.from, r.to, sizeof r.from);
    }
    for (int i = 0; i < CELLS; i++) assert_int_equal(r.from[i], sum);
    pool_free(p);
}

static void add_one(void *arg, int64_t item, int worker) {
    (void)item;
    (void)worker;
    atomic_fetch_add_explicit((atomic_long *)arg, 1, memory_order_relaxed);
}

// Short calls one after the other, and calls after a pause that has sent the workers to sleep.
static void thousands_of_short_runs(void **state) {
    (void)state;
    pool *p = open_pool(3);
    atomic_long sum = 0;
    long want = 0;
    for (int i = 0; i < 20000; i++) {
        int64_t items = i % 5;
        pool_run(p, items, add_one, &sum);
        want += items;
        if (atomic_load(&sum) != want) fail_msg("run %d: %ld items instead of %ld", i, atomic_load(&sum), want);
        if (i % 2000 == 0) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    pool_free(p);
}

// The call returns when the slowest item is done, whoever has it.
static void take_long(void *arg, int64_t item, int worker) {
    int *done = arg;
    (void)worker;
    nanosleep(&(struct timespec){.tv_nsec = item % 4 * 1000000}, NULL);
    done[item] = 1;
}

static void waits_for_slow_items(void **state) {
    (void)state;
    for (int threads = 2; threads <= 5; threads++) {
        pool *p = open_pool(threads);
        for (int i = 0; i < 10; i++) {
            int done[4] = {0};
            pool_run(p, 4, take_long, done);
            for (int k = 0; k < 4; k++) assert_int_equal(done[k], 1);
        }
        pool_free(p);
    }
}

// A call's arguments are not touched after it has returned.
static void number_cell(void *arg, int64_t item, int worker) {
    long *cells = arg;
    (void)worker;
    cells[item] = (long)item;
}

static void arguments_may_die(void **state) {
    (void)state;
    pool *p = open_pool(4);
    for (int i = 0; i < 2000; i++) {
        long *cells = calloc(8, sizeof *cells);
        assert_non_null(cells);
        pool_run(p, 8, number_cell, cells);
        for (int k = 0; k < 8; k++) assert_int_equal(cells[k], k);
        free(cells);
    }
    pool_free(p);
}

// Several pools at once, each used from a thread of its own, as several queues are.
static void *use_own_pool(void *arg) {
    pool *p = arg;
    atomic_long sum = 0;
    for (int i = 0; i < 500; i++) pool_run(p, 11, add_one, &sum);
    return (void *)(intptr_t)atomic_load(&sum);
}

static void pools_are_independent(void **state) {
    (void)state;
    enum { POOLS = 3 };
    pool *p[POOLS];
    pthread_t id[POOLS];
    for (int i = 0; i < POOLS; i++) p[i] = open_pool(2);
    for (int i = 0; i < POOLS; i++) assert_int_equal(pthread_create(&id[i], NULL, use_own_pool, p[i]), 0);
    for (int i = 0; i < POOLS; i++) {
        void *sum;
        assert_int_equal(pthread_join(id[i], &sum), 0);
        assert_int_equal((intptr_t)sum, 500 * 11);
        pool_free(p[i]);
    }
}

static void made_and_freed_unused(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) pool_free(open_pool(1 + i % 6));
}

static void default_is_one_per_processor(void **state) {
    (void)state;
    pool *p = open_pool(0);
    assert_true(pool_processors() >= 1);
    assert_int_equal(pool_threads(p), pool_processors());
    check_once(p, 1000);
    pool_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(one_thread_and_no_pool_run_in_order),
        cmocka_unit_test(writes_are_seen),
        cmocka_unit_test(thousands_of_short_runs),
        cmocka_unit_test(waits_for_slow_items),
        cmocka_unit_test(arguments_may_die),
        cmocka_unit_test(pools_are_independent),
        cmocka_unit_test(made_and_freed_unused),
        cmocka_unit_test(default_is_one_per_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

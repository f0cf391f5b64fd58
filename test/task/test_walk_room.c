// Folds on a device with memory of its own: one allocation for all runs and one copy of the data, and the bits that the
// same folds have elsewhere.
#include "cli/program.h"
#include "cpu/cpu.h"
#include "data/walk.h"
#include "support.h"
#include "task/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char description[] = "data: {set: synthetic, synthetic: {bars: 3000}, windows: {fast: 8, slow: 4}}\n"
                                  "model: {kind: mlp, widths: 12}\n"
                                  "train: {epochs: 2, batch_size: 64}\n"
                                  "walk: {train: 800, validation: 200, test: 300, jobs: 3}\n"
                                  "gpu_optimization: {memory_monitoring: false}\n";

static const char agents[] = "data: {bars: {fast: bars.csv}, frames: [1h]}\n"
                             "agent: {env: market, n_envs: 2, n_steps: 32, batch_size: 32, n_epochs: 1, limit: 40,\n"
                             "  total_timesteps: 128}\n"
                             "model: {kind: mlp, widths: 6}\n"
                             "walk: {train: 500, validation: 100, test: 150, jobs: 3}\n"
                             "gpu_optimization: {memory_monitoring: false}\n";

static const char *described;
static atomic_size_t allocated, most;
static atomic_int allocations, tables;
static size_t training;        // bytes when the last fold had been trained
static int trainings, written; // allocations by then, and copies of the bars

static void *count_allocation(queue *q, size_t bytes, err *e) {
    size_t now = atomic_fetch_add(&allocated, bytes) + bytes, was = atomic_load(&most);
    while (was < now && !atomic_compare_exchange_weak(&most, &was, now)) continue;
    atomic_fetch_add(&allocations, 1);
    return cpu_device.allocate(q, bytes, e);
}

static void count_release(queue *q, void *slab, size_t bytes) {
    atomic_fetch_sub(&allocated, bytes);
    cpu_device.release(q, slab, bytes);
}

// The bars of agents are the only array of this size.
static bool count_write(queue *q, void *to, const void *from, size_t bytes, err *e) {
    if (bytes > 100000) atomic_fetch_add(&tables, 1);
    return cpu_device.write(q, to, from, bytes, e);
}

static bool on_event(void *arg, const task_event *e) {
    int *folds = arg;
    if (e->kind == TASK_WALK_BEGIN) assert_int_equal(e->walk.jobs, 3);
    if (e->kind != TASK_FOLD) return true;
    assert_non_null(e->fold.result);
    ++*folds;
    training = atomic_load(&most);
    trainings = atomic_load(&allocations);
    written = atomic_load(&tables);
    return true;
}

static int walk_on(const device *d, const char *dir) {
    err e;
    int folds = 0;
    task_options o = {.description = {.file = "walk.yaml", .text = described},
        .devices = {.host = d, .options = {.threads = 2}},
        .version = "test",
        .listener = {on_event, &folds}};
    task_change_behind(&o.description, "run.dir", dir);
    support_ok(task_walk(&o, &(walk_options){0}, &e), &e);
    return folds;
}

static void share_one_allocation(const char *text) {
    device own = cpu_device;
    own.host_memory = false;
    own.allocate = count_allocation;
    own.release = count_release;
    own.write = count_write;
    described = text;
    int folds = walk_on(&cpu_device, "plain");
    assert_true(folds > 3);
    allocated = most = 0;
    allocations = tables = 0;
    assert_int_equal(walk_on(&own, "own"), folds);
    assert_int_equal(trainings, 1);
    assert_true(training > 0);
    assert_int_equal(allocated, 0);
    same_bytes("plain/walk.json", "own/walk.json");
}

static void folds_share_one_allocation(void **state) {
    (void)state;
    share_one_allocation(description);
}

static void agents_share_one_allocation(void **state) {
    (void)state;
    walk_put("bars.csv", 4200, 300, 1);
    share_one_allocation(agents);
    assert_int_equal(written, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folds_share_one_allocation, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(agents_share_one_allocation, support_enter, support_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The monitor: samples come in order and reach run.db, warnings are told once a crossing, stopping is prompt, and a
// kill costs only what was not written yet. The readings are made up but in the tests that ask the CPU.
#include "train/monitor.h"

#include "cpu/cpu.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SCRIPT_MOST = 32 };

// Shares of 1,000 bytes: of this process and of others, reading by reading; the last one stays.
struct queue {
    atomic_int read;
    int length;
    double process[SCRIPT_MOST], others[SCRIPT_MOST];
};

// The clock tells which reading it is.
static bool play_script(const queue *q, device_readings *r) {
    int n = atomic_fetch_add(&((queue *)(uintptr_t)q)->read, 1), at = n < q->length ? n : q->length - 1;
    *r = device_shows_nothing();
    r->clock = n;
    if (at < 0) return true;
    r->total = 1000;
    r->process = q->process[at];
    r->others = q->others[at];
    r->used = r->process + r->others;
    r->utilisation = n % 101;
    return true;
}

static bool show_nothing(const queue *q, device_readings *r) {
    atomic_fetch_add(&((queue *)(uintptr_t)q)->read, 1);
    *r = device_shows_nothing();
    return false;
}

static const device scripted = {.name = "scripted", .readings = play_script};
static const device blind = {.name = "blind", .readings = show_nothing};

static monitor *start(const device *d, queue *q, double every, size_t limit) {
    err e;
    monitor *m = monitor_start(&(monitor_options){d, q, every, limit}, &e);
    support_ok(m != NULL, &e);
    return m;
}

static void wait_for_readings(queue *q, int count) {
    double began = support_seconds();
    while (atomic_load(&q->read) < count) {
        if (support_seconds() - began > 60) fail_msg("%d readings in a minute", atomic_load(&q->read));
        usleep(200);
    }
}

// Three times round, taken while they come. Whoever takes may be put aside for so long that some are lost.
static void the_ring_wraps(void **state) {
    (void)state;
    queue q = {0};
    db_sample_row row;
    char warning[256];
    double time = 0, last = -1;
    int taken = 0;
    monitor *m = start(&scripted, &q, 1e-5, 0);
    for (bool stopped = false; !stopped;) {
        stopped = taken >= 3 * MONITOR_RING;
        if (stopped) monitor_stop(m);
        for (; monitor_take(m, &row, warning, sizeof warning); taken++) {
            assert_true(row.clock > last && row.time >= time && row.memory_used < 0 && !warning[0]);
            last = row.clock;
            time = row.time;
        }
    }
    assert_int_equal(taken + monitor_lost(m), atomic_load(&q.read));
    monitor_free(m);
}

static void a_full_ring_loses_what_is_new(void **state) {
    (void)state;
    queue q = {0};
    db_sample_row row;
    char warning[256];
    monitor *m = start(&scripted, &q, 1e-5, 0);
    wait_for_readings(&q, MONITOR_RING + 50);
    monitor_stop(m);
    monitor_stop(m);
    for (int i = 0; i < MONITOR_RING; i++) {
        assert_true(monitor_take(m, &row, warning, sizeof warning));
        assert_true(row.clock == i);
    }
    assert_false(monitor_take(m, &row, warning, sizeof warning));
    assert_int_equal(monitor_lost(m), atomic_load(&q.read) - MONITOR_RING);
    monitor_free(m);
}

// The line of each sample of a script, or an empty one.
static void play(queue *q, size_t limit, char lines[SCRIPT_MOST][256]) {
    db_sample_row row;
    atomic_store(&q->read, 0);
    monitor *m = start(&scripted, q, 1e-4, limit);
    wait_for_readings(q, q->length);
    monitor_stop(m);
    for (int i = 0; i < q->length; i++) assert_true(monitor_take(m, &row, lines[i], sizeof lines[i]));
    char after[256];
    while (monitor_take(m, &row, after, sizeof after)) assert_int_equal(after[0], 0);
    monitor_free(m);
}

// Others fill the device, twice; between 85 and 90 % it is still the same crossing.
static void a_crossing_is_told_once(void **state) {
    (void)state;
    static char lines[SCRIPT_MOST][256];
    queue q = {.length = 10,
        .process = {100, 100, 100, 100, 100, 100, 100, 100, 100, 100},
        .others = {0, 799, 800, 850, 760, 800, 749, 790, 850, 100}};
    play(&q, 0, lines);
    for (int i = 0; i < q.length; i++) assert_int_equal(lines[i][0] != 0, i == 2 || i == 8);
    assert_non_null(
        strstr(lines[2], "memory: 90 % of the card's 0.0 MB are in use; this process holds 0.0 MB, others"));
}

// This process comes near to its limit; that others have more than the limit does not matter.
static void a_limit_is_this_process_s(void **state) {
    (void)state;
    static char lines[SCRIPT_MOST][256];
    queue q = {.length = 7, .process = {10, 89, 90, 99, 95, 10, 91}, .others = {800, 0, 0, 0, 300, 0, 0}};
    play(&q, 100, lines);
    for (int i = 0; i < q.length; i++) assert_int_equal(lines[i][0] != 0, i == 2 || i == 6);
    assert_non_null(strstr(lines[2], "memory: 90 % of the limit of 0.0 MB are in use; this process holds"));
}

// One sample tells of one: where both are near, the device's comes with the next.
static void both_warnings_are_told(void **state) {
    (void)state;
    static char lines[SCRIPT_MOST][256];
    queue q = {.length = 4, .process = {10, 95, 95, 95}, .others = {0, 850, 850, 850}};
    play(&q, 100, lines);
    assert_non_null(strstr(lines[1], "memory: 95 % of the limit of"));
    assert_non_null(strstr(lines[2], "memory: 94 % of the card's"));
    assert_int_equal(lines[3][0], 0);
}

// Less than 50 ms in the mean: a machine that is busy may put one of the threads aside for longer once.
static void stopping_is_prompt(void **state) {
    (void)state;
    queue q = {0};
    const int times = 20;
    double slowest = 0, all = 0;
    for (int i = 0; i < times; i++) {
        monitor *m = start(&scripted, &q, 3600, 0);
        if (i % 2) usleep(5000);
        double began = support_seconds();
        monitor_stop(m);
        double took = support_seconds() - began;
        slowest = fmax(slowest, took);
        all += took;
        monitor_free(m);
    }
    print_message("a stop takes %.2f ms, the slowest %.2f ms\n", 1e3 * all / times, 1e3 * slowest);
    assert_true(all / times < 0.05 || support_sanitized());
    assert_int_equal(atomic_load(&q.read), 2 * times); // at the start, and at the end
}

static void a_blind_device_gives_no_samples(void **state) {
    (void)state;
    queue q = {0};
    db_sample_row row;
    char warning[256];
    monitor *m = start(&blind, &q, 1e-3, 0);
    wait_for_readings(&q, 3);
    monitor_stop(m);
    assert_false(monitor_take(m, &row, warning, sizeof warning));
    assert_int_equal(monitor_gauges(m).samples, 0);
    monitor_free(m);
    assert_false(monitor_take(NULL, &row, warning, sizeof warning));
    monitor_free(NULL);
}

// run.db

static double query(const char *text) {
    sqlite3 *file;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(file, text, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    double v = sqlite3_column_double(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(file);
    return v;
}

static int take_all(monitor *m, db *s) {
    db_sample_row row;
    char warning[256];
    int taken = 0;
    for (; monitor_take(m, &row, warning, sizeof warning); taken++) db_sample(s, &row);
    db_tick(s);
    return taken;
}

static void read_gauges(db_gauges *g) {
    err e;
    db_reader *r = db_reader_open("run.db", &e);
    support_ok(r && db_read_samples(r, g, &e), &e);
    db_reader_close(r);
}

static void same_or_both_nan(double a, double b) {
    assert_true(a == b || (isnan(a) && isnan(b)));
}

static void samples_reach_the_file_in_order(void **state) {
    (void)state;
    db_gauges all, seen;
    queue q = {.length = 3, .process = {100, 300, 200}, .others = {0, 50, 400}};
    db *s = db_open("run.db");
    db_run(s, "0.1", "", "");
    monitor *m = start(&scripted, &q, 1e-3, 0);
    int taken = 0;
    while (taken < 100) taken += take_all(m, s);
    monitor_stop(m);
    taken += take_all(m, s);
    all = monitor_gauges(m);
    monitor_free(m);
    db_close(s);
    assert_int_equal(query("SELECT count(*) FROM samples"), taken);
    assert_int_equal(query("SELECT count(*) FROM samples WHERE clock = id - 1"), taken);
    assert_int_equal(
        query("SELECT count(*) FROM samples a JOIN samples b ON b.id = a.id + 1 WHERE b.time < a.time"), 0);
    assert_int_equal(query("SELECT count(*) FROM samples WHERE temperature IS NULL AND power IS NULL"), taken);
    // Reading the file gives what the monitor itself had added up.
    read_gauges(&seen);
    assert_true(seen.samples == taken && all.samples == taken);
    assert_true(seen.memory_process == 300 && seen.memory_used == 600 && seen.memory_total == 1000);
    assert_true(isnan(seen.power) && isnan(seen.power_mean));
    same_or_both_nan(seen.memory_process, all.memory_process);
    same_or_both_nan(seen.memory_others, all.memory_others);
    same_or_both_nan(seen.temperature, all.temperature);
    same_or_both_nan(seen.utilisation, all.utilisation);
    assert_true(fabs(seen.utilisation_mean - all.utilisation_mean) < 1e-9); // SQLite sums in its own order
}

// A killed child leaves the samples that it had written, in order.
static void a_kill_leaves_what_was_written(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        queue q = {0};
        db *s = db_open("run.db");
        db_run(s, "0.1", "", "");
        monitor *m = start(&scripted, &q, 1e-3, 0);
        int taken = 0;
        while (taken < 50) taken += take_all(m, s);
        db_sync(s);
        while (taken < 80) taken += take_all(m, s);
        raise(SIGKILL);
    }
    int status = 0;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    double there = query("SELECT count(*) FROM samples");
    assert_true(there >= 50);
    assert_true(query("SELECT count(*) FROM samples WHERE clock = id - 1") == there);
}

static void a_file_of_version_1_has_none(void **state) {
    (void)state;
    db_gauges g;
    sqlite3 *file;
    db *s = db_open("run.db");
    db_run(s, "0.1", "", "");
    db_close(s);
    assert_int_equal(sqlite3_open("run.db", &file), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(file, "DROP TABLE samples; DROP TABLE sums; PRAGMA user_version = 1", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(file);
    read_gauges(&g);
    assert_true(g.samples == 0 && isnan(g.memory_process));
    // A run that goes on there brings it up to date.
    s = db_open("run.db");
    db_sample(s, &(db_sample_row){.time = 1, .memory_process = 7, .power = -1});
    db_close(s);
    read_gauges(&g);
    assert_true(g.samples == 1 && g.memory_process == 7 && isnan(g.power));
    assert_int_equal(query("PRAGMA user_version"), DB_VERSION);
}

// The CPU

static void the_cpu_has_readings(void **state) {
    (void)state;
    err e;
    device_readings r, more;
    const size_t bytes = 64 << 20;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    assert_true(cpu_device.readings(q, &r));
    assert_true(r.total > 0 && r.used > 0 && r.used <= r.total);
    assert_true(r.process > 0 && r.most >= r.process && r.others >= 0 && r.busy >= 0);
    assert_true(r.temperature < 0 && r.power < 0 && r.clock < 0 && r.utilisation < 0);
    char *memory = cpu_device.allocate(q, bytes, &e);
    support_ok(memory != NULL, &e);
    memset(memory, 1, bytes);
    double began = support_seconds();
    const int times = 200;
    for (int i = 0; i < times; i++) assert_true(cpu_device.readings(q, &more));
    double each = (support_seconds() - began) / times;
    print_message("a reading takes %.3f ms\n", 1e3 * each);
    assert_true(each < 0.005 || support_sanitized());
    // The kernel counts pages in batches, of 64 for each thread.
    assert_true(more.process - r.process > 0.9 * (double)bytes && more.most >= r.most && more.busy > r.busy);
    cpu_device.release(q, memory, bytes);
    cpu_device.close(q);
}

// Work of the processors is a share of the time.
static void the_cpu_has_a_utilisation(void **state) {
    (void)state;
    err e;
    queue *q = cpu_device.open(&(queue_options){.threads = 1}, &e);
    support_ok(q != NULL, &e);
    monitor *m = start(&cpu_device, q, 0.05, 0);
    double began = support_seconds();
    while (support_seconds() - began < 0.3) continue;
    monitor_stop(m);
    db_sample_row row;
    char warning[256];
    assert_true(monitor_take(m, &row, warning, sizeof warning) && row.utilisation < 0); // nothing to compare with
    while (monitor_take(m, &row, warning, sizeof warning)) assert_true(row.utilisation <= 100);
    db_gauges g = monitor_gauges(m);
    assert_true(g.samples >= 3 && g.utilisation > 0 && g.utilisation_mean <= g.utilisation);
    monitor_free(m);
    cpu_device.close(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_wraps),
        cmocka_unit_test(a_full_ring_loses_what_is_new),
        cmocka_unit_test(a_crossing_is_told_once),
        cmocka_unit_test(a_limit_is_this_process_s),
        cmocka_unit_test(both_warnings_are_told),
        cmocka_unit_test(stopping_is_prompt),
        cmocka_unit_test(a_blind_device_gives_no_samples),
        cmocka_unit_test_setup_teardown(samples_reach_the_file_in_order, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_kill_leaves_what_was_written, support_enter, support_leave),
        cmocka_unit_test_setup_teardown(a_file_of_version_1_has_none, support_enter, support_leave),
        cmocka_unit_test(the_cpu_has_readings),
        cmocka_unit_test(the_cpu_has_a_utilisation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

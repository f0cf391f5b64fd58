// Readings of memory, from files such as the systems of users have them.
#include "base/machine.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double mb = 1048576;

// A file at a path below the directory of the test.
static void put(const char *path, const char *text) {
    char command[600];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname %s)\"", path);
    assert_int_equal(system(command), 0);
    support_put(path, text, strlen(text));
}

// A machine of 64 GB, 40 of them available.
static void put_machine(const char *cgroup) {
    put("r/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:         1048576 kB\nMemAvailable:   41943040 kB\n");
    put("r/proc/self/status", "Name:\tx\nVmHWM:\t    4096 kB\nRssAnon:\t    2048 kB\nRssFile:\t   99999 kB\n");
    put("r/proc/self/cgroup", cgroup);
}

static void check(double total, double used, double available) {
    machine_memory m = machine_look("r");
    assert_true(m.total == total * mb);
    assert_true(m.used == used * mb);
    assert_true(m.available == available * mb);
    assert_true(m.anonymous == 2 * mb && m.most == 4 * mb);
}

static void a_machine_by_itself(void **state) {
    (void)state;
    put_machine("0::/\n");
    check(65536, 24576, 40960);
    put("r/sys/fs/cgroup/memory.max", "max\n"); // a container without a limit
    put("r/sys/fs/cgroup/memory.current", "1073741824\n");
    check(65536, 24576, 40960);
}

// 1,024 MB are counted, of which 256 are pages of files that were not used of late.
static void a_container_gives_up_pages_of_files(void **state) {
    (void)state;
    put_machine("0::/\n");
    put("r/sys/fs/cgroup/memory.max", "4294967296\n");
    put("r/sys/fs/cgroup/memory.current", "1073741824\n");
    check(4096, 1024, 3072);
    put("r/sys/fs/cgroup/memory.stat",
        "anon 12345\nfile 800000000\ninactive_anon 999\nactive_anon 1\ninactive_file 268435456\nactive_file 7\n");
    check(4096, 768, 3328);
    put("r/sys/fs/cgroup/memory.current", "5000000000\n"); // more than may be, for a moment
    check(4096, 5000000000 / mb - 256, 0);
}

static void a_container_of_version_1(void **state) {
    (void)state;
    put_machine("12:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
    put("r/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    put("r/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    put("r/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 536870912\n");
    check(2048, 512, 1536);
    put("r/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
    check(65536, 24576, 40960);
}

// A limit of any group around the process holds for it; that which leaves the least counts.
static void groups_lie_within_groups(void **state) {
    (void)state;
    put_machine("0::/user.slice/app.scope\n");
    put("r/sys/fs/cgroup/user.slice/memory.max", "1073741824\n");
    put("r/sys/fs/cgroup/user.slice/memory.current", "805306368\n");
    put("r/sys/fs/cgroup/user.slice/app.scope/memory.max", "max\n");
    put("r/sys/fs/cgroup/user.slice/app.scope/memory.current", "104857600\n");
    check(1024, 768, 256);
    put("r/sys/fs/cgroup/user.slice/app.scope/memory.max", "209715200\n");
    check(200, 100, 100);
}

static void what_is_not_said_is_negative(void **state) {
    (void)state;
    machine_memory m = machine_look("r");
    assert_true(m.total < 0 && m.used < 0 && m.available < 0 && m.anonymous < 0 && m.most < 0);
    m = machine_look(""); // here it is said
    assert_true(m.total > 0 && m.available > 0 && m.anonymous > 0 && m.most >= m.anonymous);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, support_enter, support_leave)
    const struct CMUnitTest tests[] = {
        TEST(a_machine_by_itself),
        TEST(a_container_gives_up_pages_of_files),
        TEST(a_container_of_version_1),
        TEST(groups_lie_within_groups),
        TEST(what_is_not_said_is_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "live/gauge.h"

#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MEMORY_MOST = 512 }; // KB

static long memory_kb(void) {
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1) break;
    if (f) fclose(f);
    return kb;
}

static int handles(void) {
    int count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) count++;
    if (d) closedir(d);
    return count;
}

void gauge_check(gauge *g, int64_t n, int64_t all) {
    if (n == all / 10) {
        g->memory = memory_kb();
        g->handles = handles();
    }
    if (n != all) return;
    long grown = memory_kb() - g->memory;
    print_message("%s: %lld bars, memory %ld KB, %+ld KB since the first tenth, %d open files\n", g->name, (long long)n,
        memory_kb(), grown, handles() - 3);
    if (!support_sanitized() && grown > MEMORY_MOST) fail_msg("%s: memory has grown by %ld KB", g->name, grown);
    assert_int_equal(handles(), g->handles);
}

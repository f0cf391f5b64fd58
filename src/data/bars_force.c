#include "data/bars_force.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const words[BARS_FORCES] = {
    "thin", "slips", "spikes", "splits", "levels", "columns", "conflicts", "agree", "stale", "future"};

const char *bars_force_name(bars_force check) {
    return words[__builtin_ctz(check)];
}

static int find(const char *word, size_t n) {
    for (int i = 0; i < BARS_FORCES; i++)
        if (strlen(words[i]) == n && strncmp(words[i], word, n) == 0) return i;
    return -1;
}

bool bars_force_read(const char *text, unsigned *set, err *e) {
    char all[128];
    for (const char *at = text;; at++) {
        at += strspn(at, " ");
        size_t n = strcspn(at, ",");
        int check = find(at, n);
        if (check < 0)
            return err_input(e, "\"%.*s\" is no check; use %s", n < 40 ? (int)n : 40, at,
                bars_force_text(all, sizeof all, (1u << BARS_FORCES) - 1));
        *set |= 1u << check;
        at += n;
        if (!*at) return true;
    }
}

char *bars_force_text(char *buf, size_t n, unsigned set) {
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < BARS_FORCES && used < n; i++)
        if (set & 1u << i) used += (size_t)snprintf(buf + used, n - used, "%s%s", used ? ", " : "", words[i]);
    return buf;
}

bool bars_force_refuse(unsigned force, bars_force check, unsigned *forced, err *e, const char *fmt, ...) {
    char why[900];
    if (force & check) {
        *forced |= check;
        return true;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return err_input(e, "%s, or keep it with --force %s (data.force)", why, bars_force_name(check));
}

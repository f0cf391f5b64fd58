#include "base/config_near.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LENGTH_MOST = 64 };

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

static bool same(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

// Insertions, deletions, changes and swaps of neighbours between two short texts, whatever their case; SIZE_MAX when
// one is long.
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb) {
    if (na > LENGTH_MOST || nb > LENGTH_MOST) return SIZE_MAX;
    size_t rows[3][LENGTH_MOST + 1];
    for (size_t j = 0; j <= nb; j++) rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = least_of(before[j - 1] + !same(a[i - 1], b[j - 1]), least_of(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = least_of(now[j], two_before[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

nearest nearest_to(const char *want) {
    size_t n = strlen(want);
    return (nearest){.want = want, .distance = n < 3 ? 1 : 2 + n / 4};
}

void nearest_try(nearest *n, const char *path, const char *part, size_t len) {
    size_t distance = edit_distance(n->want, strlen(n->want), part, len);
    if (distance >= n->distance) return;
    n->distance = distance;
    n->path = path;
    n->end = part + len;
}

// The table of keys, for people.
#include "base/config_keys.h"
#include "base/config_words.h"

#include <stdio.h>
#include <string.h>

// The default as a table shows it.
static const char *shown_fallback(const config_key *k) {
    if (!k->fallback) return "-";
    return *k->fallback ? k->fallback : "\"\"";
}

void config_help(const config_key *keys, size_t count, FILE *out) {
    enum { TYPE_MOST = 36, FALLBACK_MOST = 16 }; // longer ones push the rest of their row aside
    size_t path = 0, type = 0, fallback = 0;
    for (size_t i = 0; i < count; i++) {
        words w = {0};
        row_put_type(&w, &keys[i]);
        size_t p = strlen(keys[i].path), f = strlen(shown_fallback(&keys[i]));
        if (p > path) path = p;
        if (w.used > type && w.used <= TYPE_MOST) type = w.used;
        if (f > fallback && f <= FALLBACK_MOST) fallback = f;
    }
    for (size_t i = 0; i < count; i++) {
        const config_key *k = &keys[i];
        words w = {0};
        row_put_type(&w, k);
        fprintf(out, "%-*s  %-*s  %-*s  %s\n", (int)path, k->path, (int)type, w.text, (int)fallback, shown_fallback(k),
            k->help ? k->help : "");
    }
}

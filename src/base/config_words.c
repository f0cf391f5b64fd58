#include "base/config_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void words_put(words *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, fmt, args);
    va_end(args);
    if (n < 0) return;
    w->used += (size_t)n;
    if (w->used >= sizeof w->text) w->used = sizeof w->text - 1;
}

void words_item(words *w, size_t i, size_t n, const char *text, size_t len) {
    words_put(w, "%s%.*s", !i ? "" : i + 1 == n ? " or " : ", ", (int)len, text);
}

const char *words_show(char out[SHOW_ROOM], const char *text) {
    size_t n = strlen(text);
    if (n < SHOW_ROOM) return memcpy(out, text, n + 1);
    n = SHOW_ROOM - 4;
    while (n && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    memcpy(out, text, n);
    memcpy(out + n, "...", 4);
    return out;
}

// Lines of text for the messages of base/config: bounded, cut where they are too long, never failing.
#ifndef TRADEWIND_BASE_CONFIG_WORDS_H
#define TRADEWIND_BASE_CONFIG_WORDS_H

#include <stddef.h>

enum { SHOW_ROOM = 64 };

// A bounded text that grows at its end; {0} is an empty one.
typedef struct {
    char text[640];
    size_t used;
} words;

void words_put(words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Item i of n in a list such as "a, b or c".
void words_item(words *w, size_t i, size_t n, const char *text, size_t len);

// The user's text, cut to fit into a message.
const char *words_show(char out[SHOW_ROOM], const char *text);

#endif

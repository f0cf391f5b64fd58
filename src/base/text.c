#include "base/text.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static bool grow(text_out *t, size_t bytes) {
    if (bytes < t->room - t->bytes) return true; // room for the 0 is left
    size_t room = 2 * t->room + bytes + 1;
    char *more = realloc(t->text, room);
    if (!more) return false;
    t->text = more;
    t->room = room;
    return true;
}

// A write that fails leaves the stream in error; what is printed later must not follow the gap.
static ssize_t take(void *cookie, const char *data, size_t bytes) {
    text_out *t = cookie;
    t->failed = t->failed || !grow(t, bytes);
    if (t->failed) return 0;
    memcpy(t->text + t->bytes, data, bytes);
    t->bytes += bytes;
    return (ssize_t)bytes;
}

void text_open(text_out *t) {
    enum { ROOM = 1024 };
    *t = (text_out){.text = malloc(ROOM), .room = ROOM};
    NEED(t->text, "out of memory for a text");
    t->out = fopencookie(t, "w", (cookie_io_functions_t){.write = take});
    NEED(t->out, "out of memory for a text");
}

char *text_close(text_out *t) {
    bool ok = !ferror(t->out);
    ok = fclose(t->out) == 0 && ok && !t->failed;
    t->out = NULL;
    if (ok) {
        t->text[t->bytes] = 0;
        return t->text;
    }
    free(t->text);
    t->text = NULL;
    return NULL;
}

// The feed of lines on standard input. It ends where standard input does.
#include "base/clock.h"
#include "base/file.h"
#include "live/feed_source.h"
#include "live/lines.h"
#include "live/row_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    lines lines;
    row_reader *reader;
    bool ended;
    double received;
} source;

static void close_lines(void *arg) {
    source *s = arg;
    row_reader_free(s->reader);
    free(s);
}

static void *open_lines(const char *where, const feed_options *o, err *e) {
    (void)where;
    source *s = calloc(1, sizeof *s);
    NEED(s, "no memory for a feed");
    s->reader = row_reader_new(o, "stdin", o->symbol, 0, e);
    if (s->reader) return s;
    free(s);
    return NULL;
}

// Reads what is there. False where that is nothing.
static bool fill(source *s, feed_answer *why, err *e) {
    char bytes[LINES_ROOM];
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    *why = FEED_NOTHING;
    if (poll(&p, 1, 0) <= 0 || !lines_room(&s->lines)) return false;
    ssize_t n = read(STDIN_FILENO, bytes, lines_room(&s->lines));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (n < 0) {
        *why = FEED_FAILED;
        return file_fail(e, "stdin", "cannot be read", errno);
    }
    s->ended = n == 0;
    s->received = clock_seconds();
    lines_push(&s->lines, bytes, (size_t)n);
    return true;
}

static feed_answer next_line(void *arg, feed_raw *raw, err *e) {
    source *s = arg;
    feed_answer why;
    for (;;) {
        text line;
        lines_answer a = s->ended ? LINES_NONE : lines_next(&s->lines, &line);
        if (s->ended) {
            a = lines_next(&s->lines, &line);
            if (a == LINES_NONE) a = lines_rest(&s->lines, &line);
            if (a == LINES_NONE) return FEED_OVER;
        }
        if (a == LINES_LONG)
            return feed_raw_note(raw, FEED_UNREADABLE, "stdin:%lld: is longer than %d bytes",
                (long long)s->lines.number, FEED_LINE_MOST);
        if (a == LINES_GOT) {
            if (!row_reader_take(s->reader, line, s->lines.number, raw)) continue;
            raw->event.received = s->received;
            return FEED_GOT;
        }
        if (!fill(s, &why, e)) return why;
    }
}

static int descriptor(const void *arg) {
    (void)arg;
    return STDIN_FILENO;
}

const feed_source feed_source_lines = {.word = "-",
    .takes = "-",
    .help = "lines on standard input: CSV as import reads it, JSON objects, or key=value",
    .hold = FEED_HOLD_NONE,
    .clock = FEED_CLOCK_MACHINE,
    .open = open_lines,
    .close = close_lines,
    .next = next_line,
    .descriptor = descriptor};

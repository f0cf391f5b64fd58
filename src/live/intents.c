#include "live/intents.h"

#include "base/file.h"
#include "data/when.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool intents_open(intents *to, const char *path, err *e) {
    *to = (intents){.fd = -1};
    to->path = strdup(path);
    NEED(to->path, "out of memory for a path");
    to->fd = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO)
                                    : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (to->fd >= 0) return true;
    bool ok = errno == ENXIO ? err_input(e, "%s: no program reads this pipe; start it first", path)
                             : file_fail(e, path, "cannot be written", errno);
    intents_close(to);
    return ok;
}

void intents_close(intents *to) {
    if (to->path && to->fd >= 0) close(to->fd);
    free(to->path);
    *to = (intents){.fd = -1};
}

static double real(int64_t v) {
    return (double)v / 1e8;
}

json_t *intents_json(const session_intent *i) {
    const journal_intent *x = &i->intent;
    char decided[32], until[32];
    return json_pack("{s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:b}", "id", (json_int_t)x->id, "symbol", x->symbol,
        "position", real(x->lots), "units", real(x->order.units), "stop", real(x->order.stop), "target",
        real(x->order.target), "price", real(x->price), "decided", when_moment_text(decided, sizeof decided, x->time),
        "until", when_moment_text(until, sizeof until, x->until), "repeat", i->repeat);
}

// The number of bytes that were written; `errno` says why not all.
static size_t write_all(int fd, const char *text, size_t n) {
    size_t done = 0;
    while (done < n) {
        ssize_t put = write(fd, text + done, n - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) break;
        done += (size_t)put;
    }
    return done;
}

bool intents_put(intents *to, const session_intent *i, err *e) {
    json_t *line = intents_json(i);
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(13));
    json_decref(line);
    NEED(text, "out of memory for an intent");
    size_t n = strlen(text);
    text[n++] = '\n'; // in place of its end: it is written by its length
    struct stat was;
    bool regular = fstat(to->fd, &was) == 0 && S_ISREG(was.st_mode);
    size_t done = write_all(to->fd, text, n);
    int code = errno;
    free(text);
    if (done == n) return true;
    if (done && (!regular || ftruncate(to->fd, was.st_size) != 0))
        return err_run(e, "%s: an intent was written in part: %s", to->path, strerror(code));
    return file_fail(e, to->path, "cannot be written", code);
}

#include "live/intents.h"

#include "base/file.h"
#include "data/when.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool intents_open(intents *to, const char *path, err *e) {
    *to = (intents){.fd = -1};
    to->path = strdup(path);
    NEED(to->path, "out of memory for a path");
    to->fd = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO)
                                    : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (to->fd >= 0) {
        flock(to->fd, LOCK_SH | LOCK_NB); // for cut_torn; not every file system has locks
        return true;
    }
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

// The last bytes of a file, `*n` of them, ended by 0, and the file's size; NULL where it is none. The caller frees
// them.
static char *read_end(const char *path, struct stat *st, size_t *n) {
    enum { MOST = 1 << 16 };
    int fd = stat(path, st) == 0 && S_ISREG(st->st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return NULL;
    char *text = malloc(MOST + 1);
    NEED(text, "out of memory for a list of intents");
    ssize_t got = pread(fd, text, MOST, st->st_size > MOST ? st->st_size - MOST : 0);
    close(fd);
    *n = got > 0 ? (size_t)got : 0;
    text[*n] = 0;
    return text;
}

bool intents_newest(const char *path, const char *symbol, int64_t *id, double *position) {
    struct stat st;
    size_t n;
    char *text = read_end(path, &st, &n), *rest = NULL;
    bool found = false;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        err unused;
        json_t *all = json_read(line, strlen(line), &unused); // the first may be cut
        const char *of = json_string_value(json_object_get(all, "symbol"));
        if (of && strcmp(of, symbol) == 0) {
            found = true;
            *id = json_integer_value(json_object_get(all, "id"));
            *position = json_number_value(json_object_get(all, "position"));
        }
        json_decref(all);
    }
    free(text);
    return found;
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

// The bytes behind the last whole line of a list that is a file; 0 where they may be more than a line.
static off_t torn_bytes(const intents *to, off_t *size) {
    struct stat is, st;
    size_t n;
    char *text = read_end(to->path, &st, &n);
    if (!text) return 0;
    const char *end = memrchr(text, '\n', n); // a power cut may leave zeros
    off_t torn = end ? text + n - (end + 1) : (off_t)n;
    bool same = fstat(to->fd, &is) == 0 && is.st_dev == st.st_dev && is.st_ino == st.st_ino && is.st_size == st.st_size;
    *size = st.st_size;
    free(text);
    return same && (end || torn == st.st_size) ? torn : 0;
}

// Cuts off a line without its end. Where another session has the list open, it may be just writing that.
static bool cut_torn(intents *to, err *e) {
    off_t size, torn = 0;
    bool alone = flock(to->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (alone) torn = torn_bytes(to, &size);
    if (torn && ftruncate(to->fd, size - torn) != 0)
        return file_fail(e, to->path, "ends with a part of a line, which cannot be cut off", errno);
    flock(to->fd, LOCK_SH | LOCK_NB);
    return to->looked = true;
}

bool intents_put(intents *to, const session_intent *i, err *e) {
    if (!to->looked && !cut_torn(to, e)) return false;
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
    if (done == n && regular && to->sync && fdatasync(to->fd) != 0)
        return file_fail(e, to->path, "cannot be written", errno);
    if (done == n) return true;
    if (done && (!regular || ftruncate(to->fd, was.st_size) != 0))
        return err_run(e, "%s: an intent was written in part: %s", to->path, strerror(code));
    return file_fail(e, to->path, "cannot be written", code);
}

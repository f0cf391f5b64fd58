#include "base/log.h"

#include "base/file.h"
#include "base/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MOST = 4096 };

struct log_file {
    int fd;
    atomic_bool failed;
    atomic_bool torn; // the file ends in the middle of a line
};

log_file *log_open(const char *path, err *e) {
    log_file *l = malloc(sizeof *l);
    if (!l) {
        err_run(e, "%s: no memory for a log", path);
        return NULL;
    }
    do l->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    while (l->fd < 0 && errno == EINTR);
    if (l->fd < 0) {
        file_fail(e, path, "cannot be written", errno);
        free(l);
        return NULL;
    }
    atomic_init(&l->failed, false);
    atomic_init(&l->torn, false);
    return l;
}

static void append(log_file *l, const char *text, size_t bytes) {
    size_t used = 0;
    while (used < bytes) {
        ssize_t n = write(l->fd, text + used, bytes - used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            atomic_store(&l->failed, true);
            if (used || text[0] == '\n') atomic_store(&l->torn, true);
            return;
        }
        used += (size_t)n;
    }
}

void log_line(log_file *l, const char *fmt, ...) {
    if (!l) return;
    // A newline first, used only where the line before this one was cut off, and one last: a line is a single write, so
    // that lines of several threads do not mix.
    char line[LINE_MOST + 1];
    time_t now = time(NULL);
    struct tm local = {0};
    localtime_r(&now, &local);
    line[0] = '\n';
    size_t used = 1 + strftime(line + 1, 32, "%Y-%m-%d %H:%M:%S ", &local);
    size_t room = sizeof line - used - 1;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + used, room, fmt, args);
    va_end(args);
    if (n < 0) {
        atomic_store(&l->failed, true);
        return;
    }
    term_one_line(line + used);
    if ((size_t)n >= room) memcpy(line + used + room - 4, "...", 4);
    used += strlen(line + used);
    line[used++] = '\n';
    size_t skip = atomic_exchange(&l->torn, false) ? 0 : 1;
    append(l, line + skip, used - skip);
}

bool log_failed(const log_file *l) {
    return l && atomic_load(&l->failed);
}

void log_close(log_file *l) {
    if (!l) return;
    close(l->fd);
    free(l);
}

#include "run/hook.h"

#include "base/clock.h"
#include "base/err.h"
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAITING_MOST = 64, TEXT_MOST = 8192, WHY_ROOM = 256 };

static const double SECONDS = 30;

struct hook {
    char *command, *output, *dir;
    unsigned events;
    double seconds;
    char *waiting[WAITING_MOST];
    int count;
    pid_t child;  // 0: none
    double since; // when it was started
    bool killed;
    int64_t dropped;
    char failed[WHY_ROOM]; // since the last tick; empty: nothing has
};

static const char *const names[HOOK_EVENTS] = {"finished", "failed", "best", "memory", "stop"};

const char *hook_event_name(hook_event k) {
    return names[k];
}

bool hook_event_find(const char *name, hook_event *k) {
    for (int i = 0; i < HOOK_EVENTS; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *k = (hook_event)i;
        return true;
    }
    return false;
}

hook *hook_new(const hook_options *o) {
    if (!o->command || !o->command[0]) return NULL;
    hook *h = calloc(1, sizeof *h);
    NEED(h, "out of memory for a command");
    char *whole = realpath(o->dir, NULL);
    h->command = strdup(o->command);
    h->dir = whole ? whole : strdup(o->dir);
    h->output = run_path(o->dir, "on_event.log");
    NEED(h->command && h->dir, "out of memory for a command");
    h->events = o->events;
    h->seconds = o->seconds > 0 ? o->seconds : SECONDS;
    return h;
}

// Starting

// A pipe that holds the whole text already: nobody is there to wait where the command reads nothing.
static int pipe_with(const char *text) {
    int ends[2];
    size_t n = strlen(text);
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    bool open = fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0;
    ssize_t put = open ? write(ends[1], text, n) : -1;
    int code = put >= 0 ? EMSGSIZE : errno;
    close(ends[1]);
    if (put == (ssize_t)n) return ends[0];
    close(ends[0]);
    errno = code;
    return -1;
}

// A group of its own, so that Ctrl-C in the terminal is not meant for it and all of it can be ended; signals as they
// are for a new program.
static int spawn(const hook *h, int in, pid_t *child) {
    extern char **environ;
    char *const argv[] = {"sh", "-c", h->command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, h->output, O_WRONLY | O_CREAT | O_APPEND, 0666);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &usual);
    int code = posix_spawn(child, "/bin/sh", &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return code;
}

static void start(hook *h, const char *text) {
    int in = pipe_with(text), code = in < 0 ? errno : spawn(h, in, &h->child);
    if (in >= 0) close(in);
    h->since = clock_seconds();
    h->killed = false;
    if (!code) return;
    h->child = 0;
    snprintf(h->failed, sizeof h->failed, "on_event: the command could not be started: %s", strerror(code));
}

static void start_next(hook *h) {
    if (h->child || !h->count) return;
    char *text = h->waiting[0];
    memmove(h->waiting, h->waiting + 1, (size_t)--h->count * sizeof *h->waiting);
    start(h, text);
    free(text);
}

// Ending

static void note_end(hook *h, int status) {
    char *to = h->failed;
    if (h->killed)
        snprintf(to, WHY_ROOM, "on_event: the command was killed after %.0f s", h->seconds);
    else if (WIFSIGNALED(status))
        snprintf(to, WHY_ROOM, "on_event: the command was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 127)
        snprintf(to, WHY_ROOM, "on_event: the command was not found; see on_event.log");
    else if (WEXITSTATUS(status))
        snprintf(to, WHY_ROOM, "on_event: the command ended with status %d; see on_event.log", WEXITSTATUS(status));
}

static void look_at_child(hook *h) {
    int status = 0;
    if (!h->child) return;
    if (!h->killed && clock_seconds() - h->since > h->seconds) {
        h->killed = true;
        kill(-h->child, SIGKILL);
    }
    pid_t ended = waitpid(h->child, &status, WNOHANG);
    if (ended == 0) return;
    if (ended == h->child) note_end(h, status);
    h->child = 0;
}

bool hook_tick(hook *h, char *why, size_t room) {
    if (!h) return false;
    look_at_child(h);
    start_next(h);
    if (!h->failed[0]) return false;
    snprintf(why, room, "%s", h->failed);
    h->failed[0] = 0;
    return true;
}

void hook_finish(hook *h) {
    if (!h) return;
    double until = clock_seconds() + 2 * h->seconds;
    while (h->child || h->count) {
        look_at_child(h);
        start_next(h);
        if (clock_seconds() > until) return;
        if (h->child) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

// Telling

// The text goes into a pipe as a whole: it is cut where it would not fit.
static char *text_of(const hook *h, hook_event k, const char *text, json_t *more) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    json_t *all = json_pack("{s:s, s:s, s:o, s:o}", "event", names[k], "run", h->dir, "time",
        json_integer((json_int_t)t.tv_sec), "text", json_stringn(text, strnlen(text, TEXT_MOST / 2)));
    json_join(all, more);
    char *line = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(13)) : NULL;
    json_decref(all);
    return line;
}

void hook_tell(hook *h, hook_event k, const char *text, json_t *more) {
    if (!h || !(h->events & 1u << k)) {
        json_decref(more);
        return;
    }
    char *line = text_of(h, k, text ? text : "", more);
    if (!line) return;
    if (h->count == WAITING_MOST) {
        free(h->waiting[0]);
        memmove(h->waiting, h->waiting + 1, (WAITING_MOST - 1) * sizeof *h->waiting);
        h->count--;
        h->dropped++;
        snprintf(h->failed, sizeof h->failed, "on_event: the command is too slow; %lld event%s dropped",
            (long long)h->dropped, h->dropped == 1 ? " was" : "s were");
    }
    h->waiting[h->count++] = line;
    look_at_child(h);
    start_next(h);
}

void hook_free(hook *h) {
    if (!h) return;
    if (h->child) kill(-h->child, SIGKILL);
    if (h->child) waitpid(h->child, NULL, 0);
    for (int i = 0; i < h->count; i++) free(h->waiting[i]);
    free(h->command);
    free(h->output);
    free(h->dir);
    free(h);
}

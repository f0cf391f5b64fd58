// Calls go to the kernel, past the shim's own functions, so that none is counted.
#include "fault/shim_stem.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_MOST = 256 };

static int orders = -1, answers = -1;

static bool take_order(stem_order *o) {
    return syscall(SYS_read, orders, o, sizeof *o) == (long)sizeof *o;
}

static void answer(pid_t child, bool branch) {
    stem_answer a = {.branch = branch};
    int status = 0;
    if (syscall(SYS_wait4, child, &status, 0, NULL) != child) syscall(SYS_exit_group, 3);
    a.status = status;
    if (syscall(SYS_write, answers, &a, sizeof a) != (long)sizeof a) syscall(SYS_exit_group, 3);
}

static void close_ends(void) {
    syscall(SYS_close, orders);
    syscall(SYS_close, answers);
    orders = answers = -1;
}

// Another opening of the same file in place of a descriptor, which a fork shares with its parent.
static void open_again(int fd, int flags, off_t from) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int keep = (int)syscall(SYS_fcntl, fd, F_GETFD);
    int own = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
    if (own < 0 || syscall(SYS_dup3, own, fd, keep & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) syscall(SYS_exit_group, 3);
    syscall(SYS_close, own);
    syscall(SYS_lseek, fd, from, SEEK_SET);
}

// Standard output and error hold what was printed up to here.
static void own_streams(void) {
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        long from = syscall(SYS_lseek, fd, 0, SEEK_CUR);
        open_again(fd, O_WRONLY, from);
        syscall(SYS_ftruncate, fd, from);
    }
}

static void own_files(void) {
    struct stat is;
    for (int fd = STDERR_FILENO + 1; fd < FILES_MOST; fd++) {
        int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
        if (flags < 0 || fstat(fd, &is) != 0 || !(S_ISREG(is.st_mode) || S_ISDIR(is.st_mode))) continue;
        open_again(fd, flags & (O_ACCMODE | O_DIRECTORY), syscall(SYS_lseek, fd, 0, SEEK_CUR));
    }
}

bool stem_wait(stem_order *o) {
    const char *ends = getenv("FAULT_STEM");
    if (!ends || sscanf(ends, "%d %d", &orders, &answers) != 2) return false;
    while (take_order(o)) {
        if (o->act == STEM_FELL) continue;
        pid_t child = fork();
        if (child < 0) break;
        if (!child) {
            own_streams();
            if (o->act == STEM_RUN) close_ends();
            return true;
        }
        answer(child, false);
    }
    syscall(SYS_exit_group, 0);
    return false;
}

// The kernel's fork, not the C library's: locks that this thread holds stay its own. Not every processor has a call of
// that name; clone is everywhere.
bool stem_branch(stem_order *next) {
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (!child) {
        close_ends();
        own_streams();
        own_files();
        return true;
    }
    if (child < 0) kill(getpid(), SIGKILL);
    answer(child, true);
    if (!take_order(next) || next->act != STEM_GROW) kill(getpid(), SIGKILL);
    return false;
}

bool stem_may_branch(void) {
    struct stat is;
    return stat("/proc/self/task", &is) == 0 && is.st_nlink == 3;
}

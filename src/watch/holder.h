// The process of a run, looked for without touching its lock: whoever takes a lock to ask, for a moment keeps out a run
// that begins.
#ifndef TRADEWIND_WATCH_HOLDER_H
#define TRADEWIND_WATCH_HOLDER_H

typedef enum {
    HOLDER_SOME,
    HOLDER_NONE,
    HOLDER_UNKNOWN, // the directory is on a network file system, or the system does not show its locks
} holder;

holder holder_look(const char *dir);

// The same of any file that a process keeps locked as long as it lives.
holder holder_of(const char *path);

#endif

// Files: a whole file mapped for reading, a small file read into memory, and a file replaced as a whole or not at all.
//
// A path that cannot be used as asked (missing, a directory, no permission) is ERR_INPUT; a device that lets us down
// (full, broken, out of descriptors) is ERR_RUN. Every message names the path. Nothing here is buffered: what a call
// has accepted is with the kernel when it returns.
#ifndef TRADEWIND_BASE_FILE_H
#define TRADEWIND_BASE_FILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// Fills `e` for a path and an errno value, of the kind above, with advice where some is known: "made/lock: cannot be
// written: Too many open files". Returns false.
bool file_fail(err *e, const char *path, const char *what, int code);

// A file's bytes, read-only. `data` is never NULL while open, also for an empty file.
typedef struct {
    const unsigned char *data;
    size_t size;
} file_map;

// Maps the whole of a regular file. On failure `m` is closed. Whoever shortens the file in place meanwhile makes reads
// beyond its new end fault; file_writer never does that.
bool file_map_open(file_map *m, const char *path, err *e);

// Safe to call twice.
void file_map_close(file_map *m);

// The whole of a small file or pipe, followed by a NUL that `*bytes` does not count; the caller frees it. More than
// `most` bytes is ERR_INPUT. NULL on failure.
char *file_read(const char *path, size_t most, size_t *bytes, err *e);

// The path of a data file that a description names, which the caller frees: in the folder $TRADEWIND_DATA where a
// relative path is found there, else as it is.
char *file_of_data(const char *path);

// A file being written beside the one that it will replace. In the caller's memory; its fields are private.
typedef struct {
    int fd;
    char *path, *temp;
} file_writer;

// Starts a temporary file in the directory of `path`. The new file gets the mode of the one it replaces, or the usual
// one. A symbolic link at `path` is replaced by the file; anything else that is not a regular file is refused.
// Temporaries that killed processes left for the same path are removed.
bool file_writer_open(file_writer *w, const char *path, err *e);

// Appends. On failure the temporary is gone and the old file untouched; the writer can then only be abandoned.
bool file_writer_write(file_writer *w, const void *data, size_t bytes, err *e);

// Writes over bytes that were appended before, for headers that are known only after what they describe. On failure as
// file_writer_write.
bool file_writer_patch(file_writer *w, int64_t at, const void *data, size_t bytes, err *e);

// Puts the new file in place and on the disk: readers see the old file or the whole new one, also after a power cut.
// On failure the temporary is gone.
bool file_writer_commit(file_writer *w, err *e);

// Removes the temporary. Does nothing after a commit, after a failed open, write or commit, and on a second call.
void file_writer_abandon(file_writer *w);

// False where a file that was opened is no longer the one of this path.
bool file_is_there(int fd, const char *path);

// Takes a file for reading it and replacing it with a file_writer: a second caller waits for the first one to close the
// descriptor, and then gets the file that is there by now. `on_wait` is called once where another has it; NULL:
// nothing. -1 on failure, also where a stop is asked for meanwhile. A file system without locks keeps nobody away.
int file_lock(const char *path, void (*on_wait)(void *arg), void *arg, err *e);

// Makes the names in the directory of `path` durable: whatever was renamed or made there.
bool file_sync_place(const char *path, err *e);

// Makes a directory and the parents that it lacks; an existing directory is fine.
bool file_make_dirs(const char *path, err *e);

#endif

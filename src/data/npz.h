// Arrays by name: numpy's .npz archives, or a single .npy, read and written.
//
// A file is mapped and listed as a whole: a damaged directory or array header is refused at once. Pickles and members
// that are no arrays are listed and never read; asking for one is ERR_INPUT. Every array is read through a stream, in
// constant memory whether it is stored or deflated, as the element type that the caller wants; what streams deliver has
// passed its CRC-32 once the last element is read. An array in Fortran order is delivered in C order all the same.
// Elements are never unpickled, and nothing is unpacked beyond what the array's header implies.
#ifndef TRADEWIND_DATA_NPZ_H
#define TRADEWIND_DATA_NPZ_H

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "data/npy.h"
#include "data/zip.h"

#include <stdint.h>

typedef enum {
    NPZ_ARRAY,   // of numbers, bool or time
    NPZ_TEXT,    // of strings
    NPZ_RECORDS, // of records; each field reads like an array
    NPZ_PICKLE,
    NPZ_OTHER,
} npz_kind;

typedef struct {
    const char *name; // without ".npy"
    npz_kind kind;
    npy_header header; // zero where the member is no array
    const zip_member *member;
} npz_entry;

typedef struct npz {
    const char *path;
    int64_t entries;
    const npz_entry *entry;
    // Private:
    file_map map;
    arena arena;
    zip zip;
} npz;

// Maps a file and lists what it holds. A single .npy is one entry, named after the file without its directory and
// ending. On failure `z` is closed.
bool npz_open(npz *z, const char *path, err *e);

// The same of bytes that stay where they are; `path` is for messages and the name of a single array.
bool npz_open_memory(npz *z, const char *path, const void *data, size_t bytes, err *e);

// Safe to call twice.
void npz_close(npz *z);

// A file's identity: the sum of the CRC-32 and the sizes that its directory names. No array is read, so that it is that
// of the bytes only where npz_check has passed.
uint32_t npz_sum(const npz *z);

// Bytes that npz_check reads.
uint64_t npz_bytes(const npz *z);

// Reads every byte against its CRC-32, stored arrays in blocks by several threads, and tells `on_progress`, which may
// be NULL, now and then how many bytes of npz_bytes are done. ERR_INPUT names the first array that is damaged; ERR_RUN
// where a stop was asked for.
typedef void npz_progress(void *arg, uint64_t done);
bool npz_check(const npz *z, npz_progress *on_progress, void *arg, err *e);

// NULL where there is none.
const npz_entry *npz_find(const npz *z, const char *name);

// An entry that can be read; otherwise NULL, and ERR_INPUT says what it is or which ones there are.
const npz_entry *npz_want(const npz *z, const char *name, err *e);

// The data of an array that is stored, where it lies in the file: unchecked, in the file's byte and index order,
// perhaps unaligned; npy_convert reads it. NULL for one that is deflated.
const void *npz_data(const npz *z, const npz_entry *n);

// The elements of an array, or of a field of records, one after the other in C order. NULL on failure. `field` is NULL
// for an array. An array that is deflated and in Fortran order is held in memory, so it is refused above 256 MiB.
typedef struct npz_stream npz_stream;
npz_stream *npz_stream_open(const npz *z, const npz_entry *n, const char *field, err *e);
void npz_stream_close(npz_stream *s);

// The next `count` elements, no more than are left, as `to` (see npy_convert; F32, F64, I32, I64 or the array's own
// type). ERR_INPUT, with the element's index, where one does not fit the integer that is wanted.
bool npz_stream_read(npz_stream *s, npy_type to, void *out, int64_t count, err *e);
int64_t npz_stream_left(const npz_stream *s);

// All elements at once: opens a stream, reads and closes it. `out` has room for the header's count.
bool npz_read(const npz *z, const npz_entry *n, const char *field, npy_type to, void *out, err *e);

// The strings of an NPZ_TEXT entry, header.count of them, in `a`; at most 1,048,576. Where they are more than 16 MiB
// they must be no more than the file itself is, which those of npz_writer_text never are. NULL on failure.
const char *const *npz_read_text(const npz *z, const npz_entry *n, arena *a, err *e);

// A file being written: stored arrays, each beginning at a multiple of 64 bytes. In the caller's memory; its fields are
// private. After a failure it can only be abandoned; the file appears with the commit or not at all.
typedef struct {
    zip_writer zip;
    npy_header header; // of the array being written
    bool grows;
    int64_t row, written; // bytes of one step of the first dimension, and so far
} npz_writer;

bool npz_writer_open(npz_writer *w, const char *path, err *e);

// Begins an array of a number type or NPY_BOOL. dim[0] may be -1: as many as will be written. Names must differ.
bool npz_writer_begin(npz_writer *w, const char *name, npy_type type, int rank, const int64_t *dim, err *e);

// Appends bytes of the array, in this machine's order.
bool npz_writer_write(npz_writer *w, const void *data, size_t bytes, err *e);

// All bytes must be there.
bool npz_writer_end(npz_writer *w, err *e);

// A whole array; and an array of `count` strings. They are UTF-8 and no more than npz_read_text takes: ERR_INPUT if
// not.
bool npz_writer_array(
    npz_writer *w, const char *name, npy_type type, int rank, const int64_t *dim, const void *data, err *e);
bool npz_writer_text(npz_writer *w, const char *name, const char *const *text, int64_t count, err *e);

bool npz_writer_commit(npz_writer *w, err *e);

// Does nothing after a commit and on a second call.
void npz_writer_abandon(npz_writer *w);

#endif

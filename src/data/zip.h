// Zip archives: what numpy's savez and savez_compressed write, read from memory and written.
//
// The central directory is the truth; each local header must agree with it. zip64 is understood throughout. Members
// are stored or deflated; what is encrypted or packed otherwise is listed with the reason why it cannot be read.
// Refused as a whole: archives in several parts, members that overlap, names that come twice, sizes that deflate cannot
// reach. Nothing is unpacked beyond the size that the directory gives, and never more than the caller asks for.
#ifndef TRADEWIND_DATA_ZIP_H
#define TRADEWIND_DATA_ZIP_H

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"

#include <stdint.h>

enum {
    ZIP_MEMBERS_MOST = 16384,
    ZIP_ALIGN = 64,       // where the content of a written member begins: at a multiple of this
    ZIP_NAME_MOST = 1024, // bytes of a written member's name
    ZIP_HEAD_MOST = 1024, // and of its head
};

typedef struct {
    const char *name;    // what is not text in it is shown as '?'
    const char *refused; // why it cannot be read, or NULL
    bool deflated;
    bool checked;          // the CRC-32 is known
    uint32_t crc;          // of the content
    uint64_t packed, size; // bytes in the file, and of the content
    uint64_t start, data;  // where its local header and its bytes begin
} zip_member;

typedef struct {
    const char *path; // for messages
    const unsigned char *bytes;
    uint64_t size;
    int64_t members;
    const zip_member *member; // in the directory's order
} zip;

// Reads the directory of the archive in `bytes`, which must stay there; members are kept in `a`.
bool zip_open(zip *z, arena *a, const char *path, const void *bytes, uint64_t size, err *e);

// An archive with one stored member, `name`: all the bytes themselves. For files that are no archive.
void zip_wrap(zip *z, arena *a, const char *path, const char *name, const void *bytes, uint64_t size);

// A member's content from its beginning on, in constant memory. NULL on failure. A member that cannot be read is
// ERR_INPUT.
typedef struct zip_stream zip_stream;
zip_stream *zip_stream_open(const zip *z, const zip_member *m, err *e);
void zip_stream_close(zip_stream *s);

// The next `bytes` bytes, no more than are left. With the last one the whole is checked: its end and its CRC-32.
bool zip_stream_read(zip_stream *s, void *out, uint64_t bytes, err *e);
uint64_t zip_stream_left(const zip_stream *s);

// An archive being written, of stored members. In the caller's memory; its fields are private. After a failure it can
// only be abandoned; the file appears with the commit or not at all.
typedef struct {
    file_writer file;
    arena arena;
    struct zip_written *first, *last; // the last is being written while `open`
    bool open;
    uint64_t at; // bytes of the file so far, with those held back
    unsigned char *held;
    size_t holds;
} zip_writer;

bool zip_writer_open(zip_writer *w, const char *path, err *e);

// Begins a member whose first `head` bytes are given only when it ends. Its content begins at a multiple of ZIP_ALIGN.
// Names must differ.
bool zip_writer_begin(zip_writer *w, const char *name, uint64_t head, err *e);

// Appends to the member, after its head.
bool zip_writer_write(zip_writer *w, const void *data, uint64_t bytes, err *e);
bool zip_writer_end(zip_writer *w, const void *head, err *e);

bool zip_writer_commit(zip_writer *w, err *e);

// Does nothing after a commit and on a second call.
void zip_writer_abandon(zip_writer *w);

#endif

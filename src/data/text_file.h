// Text files as people keep them: plain, packed with gzip, alone in a zip archive, or standard input.
//
// The content decides, never the name. A zip archive of arrays (.npy members: an .npz) is recognised and left packed.
// In other archives the text is the only member, the only .csv among several, or the only .txt or .tsv where there is
// no .csv. Nothing is unpacked beyond TEXT_FILE_RATIO times its packed size once TEXT_FILE_FREE bytes have come out:
// text never packs that well.
#ifndef TRADEWIND_DATA_TEXT_FILE_H
#define TRADEWIND_DATA_TEXT_FILE_H

#include "base/err.h"
#include "base/file.h"

#include <stddef.h>
#include <stdint.h>

enum { TEXT_FILE_RATIO = 200, TEXT_FILE_FREE = 64 << 20 };

typedef struct {
    const char *name; // for messages: the path, or "stdin"
    const char *data; // the text; of arrays the whole archive
    size_t size;
    int64_t written; // when the file was written: seconds since 1970. A pipe is written when it is read
    bool arrays;     // an archive of arrays
    // Private:
    file_map map;
    char *owned;
} text_file;

// Opens `path`, "-" for standard input, and unpacks its first `most` bytes, SIZE_MAX for all. Standard input is read
// once for the process: every opening shows the same bytes. On failure `t` is closed. ERR_INPUT where the packing is
// damaged or holds no single text.
bool text_file_open(text_file *t, const char *path, size_t most, err *e);

// The same of bytes in memory, which must stay there.
bool text_file_unpack(text_file *t, const char *name, const void *data, size_t size, size_t most, err *e);

// Safe to call twice.
void text_file_close(text_file *t);

#endif

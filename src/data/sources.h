// Bar files to the streams of a dataset: read, put in order from fine to coarse, and coarser frames made.
//
// Files are bars as bars.h reads them, or an .npy of records with the fields of MetaTrader's rates. A last bar that was
// not over when its file was written is left out.
#ifndef TRADEWIND_DATA_SOURCES_H
#define TRADEWIND_DATA_SOURCES_H

#include "base/arena.h"
#include "data/bars.h"
#include "data/build.h"

typedef struct {
    int files;
    struct {
        const char *path;
        bars bars;
    } file[BUILD_STREAMS_MOST];
    int streams;
    build_stream stream[BUILD_STREAMS_MOST]; // from fine to coarse; features are for the caller to set
    // Private:
    arena arena;
    bar *made[BUILD_STREAMS_MOST]; // frames
    int frames;
} sources;

// Reads `count` files, 1 or more, and makes the coarser `frames` ("1h") of the finest of them. `names` gives the
// stream of each file. Streams without a name, which are frames and, where it is NULL, all, get that of their order
// (build_stream_names).
// On failure everything is undone. ERR_INPUT where two streams have the same span or name, or there are too many.
bool sources_read(sources *s, const char *const *paths, const char *const *names, int count, const bars_options *o,
    const char *const *frames, int frame_count, err *e);

// Safe to call twice.
void sources_done(sources *s);

// What a file holds, by its first bytes and rows.
typedef enum { SOURCE_BARS, SOURCE_ARRAYS, SOURCE_RECORDS, SOURCE_PANEL } source_kind;

bool source_kind_of(const char *path, source_kind *kind, err *e);
source_kind source_kind_in(const void *data, size_t bytes);

#endif

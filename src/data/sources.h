// Bar files to what a dataset is built of: read, put in order by symbol and from fine to coarse, coarser frames made.
//
// Files are bars as bars.h reads them, or an .npy of records with the fields of MetaTrader's rates. A last bar that was
// not over when its file was written is left out. Several instruments have a symbol each, from the caller or from a
// column of the file, and all have bars of the same spans.
#ifndef TRADEWIND_DATA_SOURCES_H
#define TRADEWIND_DATA_SOURCES_H

#include "base/arena.h"
#include "data/bars.h"
#include "data/build.h"

// A file, and what the caller knows of it; NULL: nothing.
typedef struct {
    const char *path, *symbol, *stream;
} source_ask;

// The bars of one symbol in one file.
typedef struct {
    const char *path, *stream;
    const char *symbol; // "" where there is none
    bars bars;
} source_file;

typedef struct {
    int files;
    source_file *file;  // [files]
    build_source build; // features are for the caller to set
    // Private:
    arena arena;
    build_series *series;
    bar **made; // frames
    int made_count;
    unsigned forced; // checks that found something and were overruled: bits of bars_force
} sources;

// Reads `count` files, 1 or more, and makes the coarser `frames` ("1h") of the finest bars of every instrument. Streams
// that the caller does not name, which frames never are, get the name of their order (build_stream_names).
// On failure everything is undone. ERR_INPUT where an instrument has two files of one span or lacks a span that another
// has, where two streams have the same name, or where there are too many.
bool sources_read(sources *s, const source_ask *ask, int count, const bars_options *o, const char *const *frames,
    int frame_count, err *e);

// Reads files that go on from a dataset's bars: only what is newer is kept; of no files nothing is. Features and frames
// are the dataset's, which append_options has passed.
// ERR_INPUT where a file's span or symbol is not in the dataset, where a bar that is in both differs, where the dataset
// lacks a bar of the file within its own time, or where files of two spans do not agree.
bool sources_follow(sources *s, const dataset *old, const source_ask *ask, int count, const bars_options *o, err *e);

// Safe to call twice.
void sources_done(sources *s);

// The words of a dataset that is made of them: sources, label, how files were read.
json_t *sources_about(const sources *s, const build_options *o, const bars_options *reading);

// Kind of a file, by its first bytes and rows.
typedef enum { SOURCE_BARS, SOURCE_ARRAYS, SOURCE_RECORDS, SOURCE_PANEL } source_kind;

// All bars of a file, by symbol; adds them to the files. A file with a header alone adds none where spans are known.
bool sources_add(sources *s, const source_ask *ask, const bars_options *o, err *e);

bool source_kind_of(const char *path, source_kind *kind, err *e);
source_kind source_kind_in(const void *data, size_t bytes);

#endif

// A dataset: series stored once, and samples that point into them.
//
// Every stream is a panel: rows of features, series after series. A sample names, per stream, the last row of its
// window and the first row of the series that row belongs to; windows are never materialised. Samples are in time
// order; where a panel has several series, samples of all of them interleave, by (time, series).
//
// Samples whose label is not known yet stand behind the others, in the same order: they have rows, a vector row, a time
// and a price, and no label. Nothing is trained or scored on them.
//
// Columns have the type they need. A table is made of parts, each of one type; its columns are those of the parts, one
// part after the other. What is read from a table is fp32 whatever the type.
//
// The pointers point into one block of the dataset's own (dataset_new), or into something that an owner keeps, such as
// a mapped file (dataset_new_of).
#ifndef TRADEWIND_DATA_DATASET_H
#define TRADEWIND_DATA_DATASET_H

#include "base/err.h"
#include "base/json.h"
#include "data/bar.h"

#include <stddef.h>
#include <stdint.h>

struct npz;

enum { STREAMS_MOST = 8, PARTS_MOST = 8 };

typedef enum { COLUMN_F32, COLUMN_F16, COLUMN_I8 } column_type;

typedef struct {
    column_type type;
    int64_t width;
    const void *data; // [rows, width]
} table_part;

typedef struct {
    int64_t rows, width; // width: of all parts together; 0 for no table
    int parts;
    table_part part[PARTS_MOST];
    const char *const *columns; // [width] their names, or NULL
} table;

// The bars that a stream's rows were computed from, series after series. A series has as many rows as bars, less those
// that its features need to warm up, and its last bar has its last row.
typedef struct {
    int64_t count;        // 0: not made of bars, or they were not kept
    const int64_t *time;  // [count, 2] open and close, UTC seconds
    const double *price;  // [count, 6] open, high, low, close, volume, spread
    const int64_t *start; // [series + 1] where each series begins
} bar_table;

typedef struct {
    const char *name;
    table series;
    const int32_t *row;   // [samples + unlabelled] the window's last row
    const int32_t *first; // [samples + unlabelled] the first row of its series
    const int64_t *start; // [series + 1] where each series begins; NULL where there are no bars
    bar_table bars;
} stream;

typedef struct dataset {
    const char *name;
    uint32_t sum;             // of the file (npz_sum) or the bars that it was read from; 0: it comes from neither
    const struct npz *arrays; // of the file, which live as long as the dataset; NULL: it comes from none
    int64_t samples;          // with a label or targets
    int64_t unlabelled;       // behind them, without
    int streams;
    stream stream[STREAMS_MOST];
    int64_t span[STREAMS_MOST];     // seconds of a bar of each stream, as when_bar_end counts them; 0: not bars
    int64_t window[STREAMS_MOST];   // steps of the windows that a stream was made of, the most one can have; 0: any
    table vector;                   // a row a sample, unlabelled ones too; may be none
    bool raw;                       // features are as measured: to be scaled before a model sees them
    int classes;                    // 0 where there are targets alone
    const int32_t *label;           // [samples]; NULL where there are targets alone
    const char *const *class_names; // [classes], or NULL
    int64_t target_width;           // targets of a sample
    const float *target;            // [samples, target_width] what a regression is to give, or NULL
    const int64_t *time;            // [samples + unlabelled] when the sample is known, UTC seconds; or NULL
    bool counted;                   // its times are numbers of samples, as windows without times have them
    const int64_t *end;             // [samples] when its label is known, as `time` counts; or NULL; needs `time`
    const float *price;             // [samples + unlabelled] what one could trade at when it is known, or NULL
    const uint8_t *known;           // [samples] 0: of no known label, as views may have; NULL: all are known
    int64_t horizon;                // bars of the first stream until a label is known, where `end` is not there
    int64_t held;                   // samples at the end that are held out for validation; 0: the split is by shares
    int64_t panel;                  // series of the first stream that are known by name; 0: none
    const char *const *panel_names; // [panel]
    const int64_t *panel_first;     // [panel + 1] where each begins in the first stream, one behind the other
    const double *volatility;       // [bars of the first stream] that labels are in units of; or NULL
    const double *state;            // [states] of features, strategies and volatility after the last bars; or NULL
    int64_t states;
    const int32_t *best;          // [samples] what the best possible classifier answers, where known; or NULL
    json_t *about;                // the maker's words: made_of, sources, label; the dataset's own, or NULL
    void *memory;                 // the dataset's own block, or NULL
    void *owner;                  // what keeps the memory otherwise
    void (*release)(void *owner); // called once by dataset_free; NULL: nothing to do
} dataset;

// The name of a class: the dataset's, or its number, written into `text`.
enum { CLASS_NAME_ROOM = 16 };
const char *dataset_class_name(const dataset *d, int k, char text[CLASS_NAME_ROOM]);

// A dataset with one zeroed block of `bytes`, to be cut up by dataset_take; NULL, with the reason, where memory is
// short.
dataset *dataset_new(size_t bytes, err *e);

// A dataset whose memory is kept by `owner` until dataset_free calls `release`; also where this fails.
dataset *dataset_new_of(void *owner, void (*release)(void *owner), err *e);

// A copy of a dataset's figures and pointers, with a block of `bytes` of its own, to be changed in part. `from` must
// outlive it: with `keeps` it is freed with the view, or at once on failure. NULL where memory is short.
dataset *dataset_view(dataset *from, bool keeps, size_t bytes, err *e);

// The next `count` items of `size` bytes of the block, from `*at` on; the caller has counted them into its size.
// dataset_room is what they take of it, alignment included.
void *dataset_take(dataset *d, size_t *at, int64_t count, size_t size);
size_t dataset_room(int64_t count, size_t size);

// Checks that everything points where it may and is what it says: sizes, rows within their series, labels within the
// classes, times that never fall, ends not before their samples. A dataset from outside is not used before this has
// passed. ERR_INPUT names what is wrong; `what` (a file's name) stands before it.
bool dataset_check(const dataset *d, const char *what, err *e);

// Samples with and without a label; series, which are 1 where none has a name.
int64_t dataset_all(const dataset *d);
int64_t dataset_series(const dataset *d);

// The named series that a sample is of; -1 where there are none.
int64_t dataset_panel_of(const dataset *d, int64_t sample);

// The bar of the first stream that a sample is known at, as a row of its bar table; -1 where bars were not kept.
int64_t dataset_bar_of(const dataset *d, int64_t sample);

// A bar of a table.
bar dataset_bar(const bar_table *t, int64_t row);

// The first row of a series whose bar opens at `time` or later; the series' end where none does.
int64_t dataset_bar_from(const bar_table *t, int64_t series, int64_t time);

// Bytes of everything that training may read: tables and lists; not names, bars and states.
int64_t dataset_bytes(const dataset *d);

// Tells the system how tables that an owner keeps will be read: all soon where they fit into memory, or here and there.
void dataset_advise(const dataset *d);

void dataset_free(dataset *d);

// Tables

size_t column_bytes(column_type t);
const char *column_name(column_type t);

// A table of one part.
table table_of(column_type type, int64_t rows, int64_t width, const void *data);

// Appends a part to a table whose rows are set.
void table_add(table *t, column_type type, int64_t width, const void *data);

// The data of a table that is one part of f32, which is the common case; NULL for any other.
const float *table_floats(const table *t);

// `rows` rows from `row` on, as fp32 [rows, width].
void table_read(const table *t, int64_t row, int64_t rows, float *to);

#endif

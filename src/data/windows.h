// Windows that a user made, in an .npz: to a dataset file, or trained on where they lie.
//
// A stream is an array [samples, steps, columns]; beside them there may be one vector a sample [samples, columns],
// labels [samples] or targets [samples, width], and times. Samples are in time order. Where the user names no other,
// x_NAME is stream NAME where it has three dimensions, and the vector where it has two (an x_NAME that can be neither
// is ERR_INPUT); the labels are labels, label or y, targets are targets or target, times are time, times or timestamps.
// Everything else is left alone; pickles are never read.
//
// Labels are whole numbers of any type, or strings. The values that occur, in rising order, are the classes 0..K-1, at
// least 2 and at most SET_CLASSES_MOST. Strings that are all directions are ordered from STRONG_DOWN to STRONG_UP,
// others by their letters.
#ifndef TRADEWIND_DATA_WINDOWS_H
#define TRADEWIND_DATA_WINDOWS_H

#include "base/arena.h"
#include "base/json.h"
#include "data/dataset.h"
#include "data/fold.h"
#include "data/npz.h"

typedef struct {
    const char *names; // "fast=a,vector=b,label=c,target=d,time=e,skip=f": what else is what; NULL: as above
    bool to_three;     // labels of 5 classes become DOWN, NEUTRAL, UP
    bool compact;      // columns of the vector that are whole numbers as i8, the others as f16
    int64_t horizon;   // steps of the first stream until a label is known
    // Called now and then with bytes read of all; false stops the import. May be NULL.
    bool (*on_progress)(void *arg, double done, double total);
    void *arg;
} windows_options;

enum { WINDOWS_SKIPS_MOST = 32 };

// Which array is what; entries that are not there are NULL.
typedef struct {
    int streams;
    const char *name[STREAMS_MOST];
    const npz_entry *stream[STREAMS_MOST], *vector, *label, *target, *time;
    int64_t samples;
    // Private: streams that the user named, and what is not to be used.
    bool given[STREAMS_MOST];
    int skips;
    const npz_entry *skip[WINDOWS_SKIPS_MOST];
} windows;

// Finds the arrays; names are kept in `a`. ERR_INPUT where there is no stream and no vector, neither labels nor
// targets, or shapes that do not go together.
bool windows_find(windows *w, const npz *z, const char *names, arena *a, err *e);

// True if an entry is a stream, the vector, or one of the lists.
bool windows_uses(const windows *w, const npz_entry *n);

// ERR_INPUT that names number `at` of an array as one that is not finite.
bool windows_not_finite(const npz *z, const npz_entry *n, int64_t at, err *e);

// Labels as classes: fills `label` [samples] and the values' names in `a`. Returns how many there are; 0 on failure.
int windows_labels(
    const windows *w, const npz *z, bool to_three, int32_t *label, const char ***names, arena *a, err *e);

// Times in seconds, from datetime64 or whole numbers of seconds, milli-, micro- or nanoseconds, and when labels are
// known: `horizon` samples later. ERR_INPUT where times fall.
bool windows_times(const windows *w, const npz *z, int64_t horizon, int64_t *time, int64_t *end, err *e);

typedef struct {
    windows found;
    fold_sums fold[STREAMS_MOST]; // by stream
    int64_t class_count[64];
    int classes;
    int vector_parts;
} windows_report;

// Folds windows into series and writes a dataset file, in memory that does not grow with the windows. Deflated arrays
// are read as well as stored ones. A number that is not finite is ERR_INPUT, with its place. `about` is told by the
// file. Names in the report live as long as `a` and `z`.
bool windows_import(
    const npz *z, const windows_options *o, const json_t *about, const char *path, windows_report *r, arena *a, err *e);

// A dataset whose tables are the file's arrays where they lie, every window a series of its own. All are read
// once: a number that is not finite is ERR_INPUT, with its place; checksums are not looked at. Labels are taken to be
// known a sample later; where the file has no times, a sample's number stands for it. ERR_INPUT where an array is not
// f32, stored and aligned: such files are to be imported.
dataset *windows_open(const char *path, err *e);

#endif

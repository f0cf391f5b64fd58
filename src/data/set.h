// A dataset file: an .npz of stored arrays, each at a multiple of 64 bytes, that numpy opens and we map.
//
// The arrays are the dataset's own tables and lists (doc/data.md lists them), so opening one copies nothing: a file
// is mapped, its directory and its lists are checked, and the tables are not read; npz_check reads all bytes against
// their CRC-32. One entry, `tradewind`, is JSON: the version, the
// streams, and whatever the maker tells of where the data come from.
#ifndef TRADEWIND_DATA_SET_H
#define TRADEWIND_DATA_SET_H

#include "base/json.h"
#include "data/dataset.h"
#include "data/npz.h"
#include "data/split.h"

enum { SET_VERSION = 2, SET_CLASSES_MOST = 64, SET_NAME_MOST = 31 };

// The entry that makes an .npz a dataset.
extern const char set_mark[];

// Defaults of training: the share of the samples, and the windows' lengths. The
// scaler in a file is fitted on them; training fits its own.
extern const double set_train_share;
int64_t set_window(const dataset *d, int stream);

// True where a stream may have this name: up to SET_NAME_MOST letters, digits, _ and -; not "target", by which weights
// name the scale of targets.
bool set_name_ok(const char *name);

// Writes a dataset; `about` is an object that tells of its making, and stays the caller's. The file appears whole or
// not at all. A raw dataset gets the mean and deviation of its columns (ERR_INPUT where a number is not finite).
bool set_write(const dataset *d, const json_t *about, const char *path, err *e);

// The same in steps, for tables that never are in memory as a whole. First the parts of all tables, in any order: each
// begins here, grows by npz_writer_write, and ends by npz_writer_end. `table` is a stream's name, or NULL for the
// vector. Then everything else: of the tables only their shapes are read, so their data may be NULL; a raw dataset is
// not scaled. The caller commits or abandons the writer.
bool set_part_begin(npz_writer *w, const char *table, int part, column_type type, int64_t width, err *e);
bool set_write_rest(npz_writer *w, const dataset *d, const json_t *about, err *e);

// Maps a file. NULL on failure: ERR_INPUT where it is no dataset, one of a newer format, or damaged. Lists are checked
// as dataset_check does; tables are not read.
dataset *set_open(const char *path, err *e);

// The same of bytes that stay where they are, at an address that is a multiple of 64.
dataset *set_open_memory(const char *path, const void *data, size_t bytes, err *e);

#endif

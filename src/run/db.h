// run.db: what a run measured, in SQLite, for everyone who wants to look while it goes on.
//
// One process writes, any number read (WAL; on a network file system, where WAL does not hold, a rollback journal).
// Rows are queued and written in short transactions, twice a second at most. Nothing here can fail a run: where the
// file is locked, full or lost, rows wait, then the oldest are dropped, and db_trouble tells. Times are seconds since
// 1970.
//
//   run      one row: version, config, plan, started, changed, status (running, done, stopped, failed), note
//   epochs   epoch, step, finished, seconds, samples_per_s, best (0 or 1), confusion (of validation, as JSON)
//   metrics  epoch, part (train, validation or empty), name, value; every number that an epoch has
//   steps    step, epoch, done, steps, time, loss_min, loss_mean, loss_max, grad_norm, lr: of `steps` up to `step`
//   events   time, step, kind, text
//   samples  time, and what the device showed then (db_sample_row), NULL where it did not; since version 2
//   sums     name of a table, sum of its rows (run/db_file.h)
#ifndef TRADEWIND_RUN_DB_H
#define TRADEWIND_RUN_DB_H

#include "base/err.h"

#include <stdint.h>

enum { DB_VERSION = 2 };

typedef struct db db;

typedef struct {
    int64_t epoch;
    uint64_t step;
    double seconds, samples_per_s;
    bool best;
    const char *confusion; // or NULL
} db_epoch_row;

typedef struct {
    const char *part, *name;
    double value;
} db_metric;

typedef struct {
    uint64_t step;
    int64_t epoch, done, steps;
    double loss_min, loss_mean, loss_max, grad_norm, lr;
} db_steps_row;

// Readings of a device at a moment: bytes, percent, degrees Celsius, watts, MHz. Negative: it did not.
typedef struct {
    double time;
    double memory_used, memory_total;     // of the device, by everyone; in all
    double memory_process, memory_others; // by this process, by all others
    double memory_most;                   // by this process at most, as the system kept it
    double processes;                     // others that use the device
    double utilisation, temperature, power, clock, memory_clock;
} db_sample_row;

// Samples taken together: the most of each, and the mean of some. NAN: none has it.
typedef struct {
    int64_t samples;
    double memory_process, memory_others, memory_used, memory_total;
    double utilisation_mean, utilisation;
    double temperature, power_mean, power;
} db_gauges;

// Opens or makes the file. It always gives a db: one that could not be opened, or that a newer version has written,
// takes rows and loses them.
db *db_open(const char *path);
void db_close(db *d);

// A run that begins, or goes on under this description.
void db_run(db *d, const char *version, const char *config, const char *plan);

// Forgets what comes after a step and from an epoch on: a run that goes on from there will write it again. Of events
// only those of kind "precision", which would be told twice, and that of the step itself unless the run stands behind
// it (`changed`); the others happened.
void db_rewind(db *d, uint64_t step, int64_t epoch, bool changed);

void db_status(db *d, const char *status, const char *note);
void db_epoch(db *d, const db_epoch_row *row, const db_metric *metrics, int count);
void db_steps(db *d, const db_steps_row *row);
void db_event(db *d, uint64_t step, const char *kind, const char *text);
void db_sample(db *d, const db_sample_row *row);

// Writes what waits, if it is time.
void db_tick(db *d);

// Writes what waits now, and on the disk; a checkpoint that follows finds its past there.
void db_sync(db *d);

// True if rows were lost or cannot be written now, and why.
bool db_trouble(const db *d, err *why);

// Reading

typedef struct {
    char status[16], version[32];
    double started, changed;    // changed: when it was last written to
    int64_t epochs, best_epoch; // that ended; 0 where there is none
    uint64_t step;              // the last one
    double seconds;             // of all epochs
    int64_t begun, done;        // the epoch that has not ended and samples of it; 0 where there is none
    double loss;                // of its last steps, the mean
} db_summary;

// True if this version can go on with a file, or there is none; ERR_INPUT where a newer one has written it. All that
// read refuse such a file too.
bool db_known(const char *path, err *e);

// Opens a run.db that may be in use, as it is at this moment. NULL, and ERR_INPUT, where it is none, is of a newer
// program, or its rows do not fit their sums: a flipped bit is not shown as a figure.
typedef struct db_reader db_reader;
db_reader *db_reader_open(const char *path, err *e);
void db_reader_close(db_reader *r);

// False where an earlier program has written the file, which has no sums.
bool db_reader_checked(const db_reader *r);

// The summary of the run. ERR_INPUT where there is no row of it.
bool db_read(db_reader *r, db_summary *out, err *e);

// The text of the last event of a kind; empty where there is none.
bool db_read_event(db_reader *r, const char *kind, char *text, size_t room, err *e);

// Gauges over the samples of all the run's time; none where an earlier version has written the file.
bool db_read_samples(db_reader *r, db_gauges *out, err *e);

// Calls `use` with every metric of an epoch.
bool db_read_metrics(db_reader *r, int64_t epoch,
    void (*use)(void *arg, const char *part, const char *name, double value), void *arg, err *e);

// Rows from the first to the last, in the order of time; texts live as long as the call. What a row does not have is
// NaN, or NULL for a text. A table that an earlier version has not made has no rows.

bool db_each_epoch(db_reader *r, void (*use)(void *arg, const db_epoch_row *row), void *arg, err *e);

// Every metric of every epoch.
typedef void db_use_metric(void *arg, int64_t epoch, const db_metric *m);
bool db_each_metric(db_reader *r, db_use_metric *use, void *arg, err *e);

// Reads all of them against their sum first: ERR_INPUT where they differ.
bool db_each_steps(db_reader *r, void (*use)(void *arg, const db_steps_row *row), void *arg, err *e);
bool db_each_sample(db_reader *r, void (*use)(void *arg, const db_sample_row *row), void *arg, err *e);

#endif

// Rows of run.db that have come since a cursor: for readers that stay, each with a cursor of its own.
#ifndef TRADEWIND_RUN_DB_SINCE_H
#define TRADEWIND_RUN_DB_SINCE_H

#include "base/arena.h"
#include "run/db.h"

#include <sqlite3.h>

// The last row of each table that was handed out; zero: none.
typedef struct {
    int64_t epoch, step, sample, event;
    int64_t metric, metrics; // the last epoch whose metrics were handed out, and how many these were
} db_cursor;

typedef struct {
    db_epoch_row row;
    double finished;
} db_epoch_news;

typedef struct {
    int64_t epoch;
    db_metric metric;
} db_metric_news;

typedef struct {
    db_steps_row row;
    double time;
} db_steps_news;

typedef struct {
    int64_t id;
    uint64_t step;
    double time;
    const char *kind, *text;
} db_event_news;

// In the order of their tables' keys; what a row does not have is NaN, or NULL for a text. Where an epoch gets further
// metrics later, all of them come once more.
typedef struct {
    bool more; // further rows are there
    int epochs, metrics, steps, samples, events;
    db_epoch_news *epoch;
    db_metric_news *metric;
    db_steps_news *steps_row;
    db_sample_row *sample;
    db_event_news *event;
    arena texts;
} db_news;

void db_news_init(db_news *n);
void db_news_done(db_news *n);

// Reads rows behind a cursor and moves it on: about `most` of each table at once. A table that is not there, or whose
// columns are not known, has no rows. False where the file cannot be read; the cursor is then as it was.
bool db_since(sqlite3 *file, db_cursor *c, int most, db_news *out);

// The row of the run, and how far its tables are.
typedef struct {
    char status[16], version[32];
    char *config, *plan, *note; // to be freed; "" where there are none
    double started, changed;
    int64_t epoch, best_epoch, step, sample, event; // the newest of each table; 0: none
    int64_t resumed;                                // the newest event that tells of going on; 0: none
} db_now;

// True with zeroes where the file has no row of a run yet. False where it cannot be read.
bool db_now_read(sqlite3 *file, db_now *out);
void db_now_done(db_now *n);

// Compares all rows with their sums: false, with the reason, where they differ. A file without sums passes.
bool db_vouch(sqlite3 *file, const char *path, err *e);

// Calls `use` with the name of each table, and whether this program knows it.
bool db_each_table(sqlite3 *file, void (*use)(void *arg, const char *name, bool known), void *arg);

// Calls `use` with the rows of a table of any kind, as texts (NULL: none), in the order in which they were added; the
// first time with the names of its columns. Returning false ends it. False where there is no such table, or it cannot
// be read.
typedef bool db_use_row(void *arg, int columns, const char *const *values);
bool db_each_row(sqlite3 *file, const char *table, db_use_row *use, void *arg);

#endif

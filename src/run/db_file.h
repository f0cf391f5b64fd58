// The file of run.db, for run/db*.c alone: its format, its tables, the sums by which damage is found, and values of its
// rows.
//
// SQLite does not notice a bit that flips within a number or a text. The table `sums` has a row for every other table:
// how many rows it has (times 2^32) and the CRC-32 of each, added up; for `steps`, which may have millions of rows, a
// second one of the newest row alone, which is all that most readers show. Triggers of the writer's connection keep
// them in the transaction that writes the rows, so that every reader's snapshot has rows and sums of one moment.
// Earlier programs keep no sums: rows that they add to a file that has some do not fit.
#ifndef TRADEWIND_RUN_DB_FILE_H
#define TRADEWIND_RUN_DB_FILE_H

#include "run/db.h"

#include <sqlite3.h>

struct db_reader {
    sqlite3 *file;
    char *path;
    bool unsummed;
};

// False, and ERR_INPUT, where a newer program has written it.
bool db_file_known(sqlite3 *file, const char *path, err *e);

// Makes a file ready for writing: tables that are missing, sums of rows that have none yet, and the triggers of this
// connection. On a network file system (base/network.h) there is no WAL: its readers share memory, which other machines
// do not. False where SQLite has failed.
bool db_file_prepare(sqlite3 *file, const char *path);

typedef enum {
    DB_FILE_WHOLE,
    DB_FILE_UNSUMMED, // an earlier program has written it
    DB_FILE_DAMAGED,  // rows and sums differ
    DB_FILE_FAILED,   // SQLite has failed, and says why
} db_file_state;

// Compares all that can be shown with its sums, in the caller's transaction; with `drawn` all steps, and nothing else.
// `*table`: the first one that differs.
db_file_state db_file_check(sqlite3 *file, bool drawn, const char **table);

// The same for a reader. False, with the reason, where rows and sums differ.
bool db_file_vouches(db_reader *r, bool drawn, err *e);

// Fills `e` for the last failure, and is false: a file that is none of ours is the user's mistake, and so is a damaged
// one; disks that fail are not. `what` stands before the reason. Memory that is short ends the program.
bool db_file_fail(sqlite3 *file, const char *path, const char *what, err *e);

// True where a reader's file has a table, which earlier programs may not know.
bool db_file_has(const db_reader *r, const char *table);

// True where there is a further row; *ok is false where the file cannot be read.
bool db_file_next(sqlite3_stmt *st, bool *ok);

// Values of the present row: a text, "" for NULL; a number, NaN for NULL.
const char *db_file_text(sqlite3_stmt *st, int column);
double db_file_real(sqlite3_stmt *st, int column);

#endif

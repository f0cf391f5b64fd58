// The file of run.db, for run/db.c and run/db_read.c alone: its format, its tables, and the sums by which damage is
// found.
//
// SQLite does not notice a bit that flips within a number or a text. The table `sums` has a row for every other table:
// how many rows it has (times 2^32) and the CRC-32 of each, added up; of `steps`, which may have millions of rows of
// which only the newest is shown, that of the newest. Triggers of the writer's connection keep them in the transaction
// that writes the rows, so that every reader's snapshot has rows and sums of one moment. Earlier programs keep no sums:
// rows that they add to a file that has some do not fit.
#ifndef TRADEWIND_RUN_DB_FILE_H
#define TRADEWIND_RUN_DB_FILE_H

#include "base/err.h"

#include <sqlite3.h>

// False, and ERR_INPUT, where a newer program has written it.
bool db_file_known(sqlite3 *file, const char *path, err *e);

// Makes a file ready for writing: tables that are missing, sums of rows that have none yet, and the triggers of this
// connection. False where SQLite has failed.
bool db_file_prepare(sqlite3 *file);

typedef enum {
    DB_FILE_WHOLE,
    DB_FILE_UNSUMMED, // an earlier program has written it
    DB_FILE_DAMAGED,  // rows and sums differ
    DB_FILE_FAILED,   // SQLite has failed, and says why
} db_file_state;

// Compares all that can be shown with its sums, in the caller's transaction. `*table`: the first one that differs.
db_file_state db_file_check(sqlite3 *file, const char **table);

#endif

// The file of run.db, for run/db*.c alone: its format, its tables, the sums of their rows (run/row_sums.h), and
// values of its rows. The newest of `steps` has a sum of its own, as most readers show it alone.
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

// Compares all that a reader can show with its sums, in the caller's transaction; with `drawn` all steps, and nothing
// else. False, with the reason, where rows and sums differ.
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

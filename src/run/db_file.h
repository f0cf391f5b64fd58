// The file of run.db, opened for reading: shared by the two halves of run/db.h's readers and private to them.
#ifndef TRADEWIND_RUN_DB_FILE_H
#define TRADEWIND_RUN_DB_FILE_H

#include "run/db.h"

#include <sqlite3.h>

// NULL, with the reason, where it is not the database of a run or a newer version has written it.
sqlite3 *db_file_open(const char *path, err *e);

// Fills `e` for the file's last failure: a file that is none of ours is the user's mistake; memory and disks that fail
// are not. `what` stands before the reason. `file` may be NULL.
void db_file_fail(sqlite3 *file, const char *path, const char *what, err *e);

// A number of the present row; NaN for NULL.
double db_file_real(sqlite3_stmt *st, int column);

#endif

// Sums of the rows of an SQLite file, by which damage is found: SQLite does not notice a bit that flips within a number
// or a text.
//
// The table `sums` has a row for every other table: how many rows it has (times 2^32) and the CRC-32 of each, added up;
// for a table that may have millions of rows, a second one of the newest row alone. Triggers of the writer's connection
// keep them in the transaction that writes the rows, so that every reader's snapshot has rows and sums of one moment.
// Programs that keep no sums leave rows that do not fit.
#ifndef TRADEWIND_RUN_ROW_SUMS_H
#define TRADEWIND_RUN_ROW_SUMS_H

#include <sqlite3.h>
#include <stdbool.h>

typedef struct {
    const char *key, *name, *columns; // of the sum; the table with all its columns
    const char *newest;               // column by which only the last row is summed; NULL: all rows are
    bool drawn;                       // rows are shown one by one alone, and compared where that is asked for
} row_sums_table;

typedef enum {
    ROW_SUMS_WHOLE,
    ROW_SUMS_NONE,    // an earlier program has written the file
    ROW_SUMS_DAMAGED, // rows and sums differ
    ROW_SUMS_FAILED,  // SQLite has failed, and says why
} row_sums_state;

// Makes a writer's connection keep the sums, in its transaction: sums of tables that have none yet, and the triggers.
// False where SQLite has failed.
bool row_sums_keep(sqlite3 *file, const row_sums_table *tables, int count);

// Compares the rows of tables with their sums, in the caller's transaction; with `drawn` those tables alone, else all
// others. `*table`: the first one that differs.
row_sums_state row_sums_check(sqlite3 *file, const row_sums_table *tables, int count, bool drawn, const char **table);

#endif

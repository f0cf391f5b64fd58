// The file in which a live session keeps its books: how it is known, and the tables whose rows have sums
// (run/row_sums.h). live/journal.c writes it; whoever looks on (watch/live_view.h) reads it as an image (run/image.h).
#ifndef TRADEWIND_RUN_LIVE_FILE_H
#define TRADEWIND_RUN_LIVE_FILE_H

#include "base/err.h"
#include "run/row_sums.h"

enum { LIVE_FILE_FORMAT = 1, LIVE_FILE_MARK = 0x74776c76, LIVE_FILE_TABLES = 10 }; // "twlv", its application_id

extern const row_sums_table live_file_tables[LIVE_FILE_TABLES];

// Shown of a session: books of every instrument, and the newest intents, trades and events, the newest first. Money,
// prices and units are numbers, and times texts, UTC.
typedef struct {
    const char *name, *sql;
} live_file_part;

typedef enum {
    LIVE_FILE_BOOKS,
    LIVE_FILE_INTENTS,
    LIVE_FILE_TRADES,
    LIVE_FILE_EVENTS,
    LIVE_FILE_PARTS
} live_file_shown;

extern const live_file_part live_file_parts[LIVE_FILE_PARTS];

typedef enum {
    LIVE_FILE_OURS,
    LIVE_FILE_EMPTY,   // it has no tables yet
    LIVE_FILE_FOREIGN, // another program's, or of a newer format: `e`
    LIVE_FILE_FAILED,  // SQLite has failed, and says why
} live_file_state;

// Tells by the file's head what it is.
live_file_state live_file_known(sqlite3 *file, const char *path, err *e);

// Compares the rows of all tables with their sums, in the caller's transaction: ERR_INPUT where they differ, and
// ERR_NONE in `e` where SQLite has failed and says why.
bool live_file_vouch(sqlite3 *file, const char *path, err *e);

#endif

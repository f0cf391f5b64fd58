// SQLite's write-ahead log, read from outside: which frame holds the newest committed state of a page.
//
// The file is appended to by one writer, and begun anew with other salts once all of it is in the database. Frames
// carry sums over all before them, so that a half-written tail, or a log of noise, ends where its sums do. Frames that
// were scanned are not read again until the log begins anew.
#ifndef TRADEWIND_RUN_WAL_H
#define TRADEWIND_RUN_WAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WAL_HEAD = 32, WAL_FRAME_HEAD = 24 };

typedef struct {
    unsigned char head[WAL_HEAD]; // as it was scanned; zero where there is no log
    bool big_sums;                // the sums are of big-endian words
    uint32_t page_bytes;
    uint32_t sum[2];    // up to the last frame that was committed
    uint32_t committed; // frames
    uint32_t pages;     // of the database, as the last commit left it
    uint32_t *frame_of; // by page from 0: the frame from 1 that holds it, 0: the database does
    uint32_t room;      // entries of frame_of
} wal;

void wal_done(wal *w);

// Forgets all frames.
void wal_clear(wal *w);

// Scans what was committed since the last scan. `most`: pages that the database can have. False where the file cannot
// be read, or gave way to another log while it was.
bool wal_scan(wal *w, int file, uint32_t most);

// True where a file still begins with the log that was scanned.
bool wal_holds(const wal *w, int file);

// The place of a page, counted from 0, in the log's file; -1: the database has it.
int64_t wal_place(const wal *w, uint32_t page);

#endif

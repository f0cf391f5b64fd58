// Following a run: what its directory shows while it goes on, and the rows of run.db that have come since a cursor.
//
// A follower takes no lock, writes nothing, and is never waited for (run/image.h). A poll of a run where nothing
// happens costs two calls of the system. Rows of a run that has ended are compared with their sums before they are
// handed out, unless its file is larger than 32 MB: where a bit has flipped it is broken. The directory may be missing,
// come later, be replaced by another run, or go. Walks and ensembles are followed through their parts' directories,
// each a run.
//
//   tail *f = tail_open("runs/one");
//   tail_cursor c = {0};
//   for (;; sleep) {
//       if (tail_poll(f) == TAIL_SAME) continue;
//       do news = tail_read(f, &c); while (news && use(news) && news->more);
//   }
#ifndef TRADEWIND_WATCH_TAIL_H
#define TRADEWIND_WATCH_TAIL_H

#include "run/db_since.h"

typedef struct tail tail;

typedef enum {
    TAIL_SAME, // nothing is new
    TAIL_NEW,  // tail_now or the rows are
} tail_news;

typedef enum {
    TAIL_ABSENT,  // there is no run.db: the run has not begun, or its directory is gone
    TAIL_UNREADY, // run.db has no run in it yet, or is moving
    TAIL_BROKEN,  // it cannot be read: `trouble`
    TAIL_READY
} tail_state;

typedef struct {
    tail_state state;
    bool was_there;     // a run.db was there, and is gone
    err trouble;        // of TAIL_BROKEN
    uint64_t life;      // grows where all rows begin anew: another run, or one that went back to a checkpoint
    const char *status; // running, done, stopped, failed; killed: it says running, and no process is there; "" before
                        // it is ready
    double silent;      // seconds since run.db was last written to; NaN before it is ready
    db_now run;
} tail_now;

tail *tail_open(const char *dir);
void tail_close(tail *f);

const char *tail_dir(const tail *f);

// Looks at the directory.
tail_news tail_poll(tail *f);

// How it stood at the last poll. Texts live until the next one.
const tail_now *tail_at(const tail *f);

typedef struct {
    uint64_t life;
    db_cursor at;
} tail_cursor;

typedef struct {
    bool again; // all that was handed out to this cursor before is void
    bool more;  // there are further rows: read again
    const db_news *rows;
} tail_rows;

// Rows behind the cursor, which moves on; they live until the next call. False where they cannot be read at this
// moment: the cursor stays, poll again.
bool tail_read(tail *f, tail_cursor *c, tail_rows *out);

// Tables of run.db, also those that this program does not know; rows of one of them, as texts. False as tail_read,
// and then what was used must be thrown away.
bool tail_each_table(tail *f, void (*use)(void *arg, const char *name, bool known), void *arg);
bool tail_each_row(tail *f, const char *table, db_use_row *use, void *arg);

// Folds of a walk and members of an ensemble that have begun, in order: their directories, NULL at the end. The caller
// frees all of it by tail_parts_free.
char **tail_parts(const char *dir);
void tail_parts_free(char **parts);

#endif

// Intents for another program: a line of JSON each, at the end of a file or a pipe.
//
//   {"id": 1747100700, "symbol": "XAUUSD", "position": -3.5, "units": -3.5, "stop": 2360.1, "target": 0, "price":
//   2351.4,
//    "decided": "2025-05-13 01:45", "until": "2025-05-13 02:00", "repeat": false}
//
// `position` is the number of lots that is wanted, not an order for the difference: carrying a line out twice changes
// nothing. Ids rise, from one state to the next too (live/journal.h); a program that keeps the last id it has carried
// out for a symbol passes over any line whose id is not larger. `repeat`: the line, or one for the same position, may
// have been written before. Prices of 0: none. Times are UTC.
#ifndef TRADEWIND_LIVE_INTENTS_H
#define TRADEWIND_LIVE_INTENTS_H

#include "base/json.h"
#include "live/session.h"

typedef struct {
    char *path; // NULL: not opened
    int fd;
    bool looked; // for a line that was torn
    bool sync;   // lines of a file are on the disk before intents_put returns
} intents;

// Opens a file or a pipe to append to, "-" for standard output. A pipe needs a reader.
bool intents_open(intents *to, const char *path, err *e);
void intents_close(intents *to);

// Writes a line, whole or not at all. False where it cannot be written. The first one takes the place of a line without
// its end: a kill in the middle of a write leaves such a one across two pages, a power cut anywhere, and nothing says
// that it was given.
bool intents_put(intents *to, const session_intent *i, err *e);

// The newest line of an instrument in a list that is a file: its id, and lots. False where there is none among the last
// lines, or the list is a pipe.
bool intents_newest(const char *path, const char *symbol, int64_t *id, double *position);

// The same as an object; a new reference.
json_t *intents_json(const session_intent *i);

#endif

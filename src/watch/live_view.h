// The live session of a run (tradewind live), as far as its state shows it: whether one runs, its books, and its newest
// intents, trades and events. The state is read as an image (run/image.h): no lock is taken, nothing is written, and
// the session is never waited for. Rows are not compared with their sums; `tradewind live --status` does that.
#ifndef TRADEWIND_WATCH_LIVE_VIEW_H
#define TRADEWIND_WATCH_LIVE_VIEW_H

#include "base/json.h"

typedef struct live_view live_view;

// Follows DIR/live.db, where a session keeps its state unless it is told otherwise. It need not be there.
live_view *live_view_new(const char *dir);
void live_view_free(live_view *v);

// Looks at the state, once a second at most; true where something is new.
bool live_view_poll(live_view *v);

// True where there is a state that could not be read yet, as its pages move.
bool live_view_waits(const live_view *v);

// How it stood at the last poll, as {"state", "running", "books", "intents", "trades", "events"}, whose rows are those
// of run/live_file.h; "running" is null where that cannot be told. In place of the rows "why" where the state cannot be
// read. NULL: no session has kept a state. It is the view's, until the next poll.
json_t *live_view_now(const live_view *v);

#endif

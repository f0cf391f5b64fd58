// The live session of a run on the screen: whether it runs, positions and equity of its instruments, the newest events
// and intents.
#ifndef TRADEWIND_WATCH_SCREEN_LIVE_H
#define TRADEWIND_WATCH_SCREEN_LIVE_H

#include "base/json.h"
#include "watch/cells.h"

// `live` is of live_view_now, or NULL: there is none, and no rows.
int screen_live_rows(const json_t *live);

// Draws as much as there are rows for.
void screen_live(cells *g, area a, const json_t *live);

#endif

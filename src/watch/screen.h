// The screen of the terminal view: what is known of a run, laid out on a grid of any size. Nothing here knows a
// terminal.
#ifndef TRADEWIND_WATCH_SCREEN_H
#define TRADEWIND_WATCH_SCREEN_H

#include "base/json.h"
#include "watch/cells.h"
#include "watch/story.h"
#include "watch/tail.h"

// Choices of the user.
typedef struct {
    int run, runs;  // shown, from 0; of how many
    int curve;      // of screen_curves
    int zoom;       // the newest 1 / 2^zoom
    bool logarithm; // of values
    bool large;     // the curve alone
    bool help;
    double now;         // seconds since 1970
    const char *note;   // a word on the runs, or NULL
    const json_t *live; // of live_view_now
} screen_view;

enum { SCREEN_ROWS_LEAST = 8, SCREEN_COLUMNS_LEAST = 40, SCREEN_ZOOM_MOST = 8 };

// Curves that can be drawn of a run; what they are called.
int screen_curves(const story *s);
const char *screen_curve_name(const story *s, int which, char *text, size_t room);

void screen_draw(cells *g, const story *s, const tail *t, const screen_view *v);

#endif

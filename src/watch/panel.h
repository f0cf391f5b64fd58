// A terminal on which grids are shown, by ncurses, which no other file knows.
#ifndef TRADEWIND_WATCH_PANEL_H
#define TRADEWIND_WATCH_PANEL_H

#include "base/err.h"
#include "watch/cells.h"

typedef struct panel panel;

// Takes the terminal of stdin and stdout. ERR_RUN where it cannot be drawn on.
panel *panel_open(err *e);

// Gives the terminal back as it was.
void panel_close(panel *p);

void panel_size(int *rows, int *columns);
void panel_show(const panel *p, const cells *g);

// Draws everything anew with the next grid, whatever others have written over it.
void panel_again(void);

// Keys beside characters.
enum {
    PANEL_NONE = -1,
    PANEL_OTHER = 0x110000,
    PANEL_UP,
    PANEL_DOWN,
    PANEL_LEFT,
    PANEL_RIGHT,
    PANEL_BACK_TAB,
    PANEL_RESIZED
};

// Waits for a key for a while; false where the terminal is gone.
bool panel_wait(int milliseconds);

// The next key that has come; PANEL_NONE: there is none.
int panel_key(void);

#endif

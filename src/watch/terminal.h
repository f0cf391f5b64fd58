// The terminal view: runs followed and drawn with ncurses until the user leaves.
#ifndef TRADEWIND_WATCH_TERMINAL_H
#define TRADEWIND_WATCH_TERMINAL_H

#include "base/err.h"

#include <stdbool.h>

// Directories of runs; those of walks and ensembles stand for their parts too, and others for the runs in them.
typedef struct {
    const char *const *dir;
    int dirs;
} terminal_options;

// Shows the runs until `q`, Ctrl-C, SIGTERM or SIGHUP, and gives the terminal back as it was. ERR_RUN where the
// terminal cannot do it.
bool terminal_watch(const terminal_options *o, err *e);

// Prints one screen of each run as plain text.
bool terminal_print(const terminal_options *o, int rows, int columns, err *e);

// Prints the figures of each run as a JSON object a line.
bool terminal_json(const terminal_options *o, err *e);

#endif

// tradewind watch: runs as they go on, in the terminal or for other programs. It reads; runs take no notice.
#include "cli/watch_term.h"
#include "cli/watch_web.h"

#include <stdio.h>

static bool run(const cli_options *o, err *e) {
    return watch_web_asked(o) ? watch_web(o, e) : watch_term(o, e);
}

static void print_more(void) {
    fputs("\nin the browser, and for other programs (DIR in the place of RUN):\n", stdout);
    fputs(watch_web_help, stdout);
}

const cli_command cli_watch = {"watch", "[RUN...] [--web PORT]", "runs as they go on, in the terminal or the browser",
    "RUN is a run's directory, a walk's or an ensemble's (its parts are shown), or one with runs in it (default: "
    "runs).\n"
    "Nothing is written, and no run is made to wait. Keys: q quit, ? help, m metric, +/- zoom, Tab the next run.\n"
    "  --once              print one frame as text, of $LINES and $COLUMNS, and end\n"
    "  --json              print the figures of each run, and end\n",
    print_more, NULL, WORDS_MOST, run, WATCH_WEB_VALUES, WATCH_TERM_FLAGS " " WATCH_WEB_FLAGS};

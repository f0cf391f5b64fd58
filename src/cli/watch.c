// tradewind watch: runs as they go on. It reads; runs take no notice.
#include "cli/cli.h"
#include "cli/watch_term.h"

const cli_command cli_watch = {"watch", "[RUN...]", "runs as they go on, in the terminal",
    "RUN is a run's directory, a walk's or an ensemble's (its parts are shown), or one with runs in it (default: "
    "runs).\n"
    "Nothing is written, and no run is made to wait. Keys: q quit, ? help, m metric, +/- zoom, Tab the next run.\n"
    "  --once              print one frame as text, of $LINES and $COLUMNS, and end\n"
    "  --json              print the figures of each run, and end\n",
    NULL, NULL, WORDS_MOST, watch_term, NULL, WATCH_TERM_FLAGS};

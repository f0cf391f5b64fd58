// tradewind watch: runs as they go on. It reads; runs take no notice.
#include "cli/watch_web.h"

#include <stdio.h>

static bool run(const cli_options *o, err *e) {
    if (watch_web_asked(o)) return watch_web(o, e);
    return err_input(e, "say how: --web PORT, or --csv TABLE");
}

static void print_more(void) {
    fputs(watch_web_help, stdout);
}

const cli_command cli_watch = {"watch", "[DIR] --web PORT", "runs as they go on, in the browser",
    "DIR is a run, or a directory of runs (default: runs). Nothing is written, and no run is made to wait.\n",
    print_more, NULL, 64, run, WATCH_WEB_VALUES, WATCH_WEB_FLAGS};

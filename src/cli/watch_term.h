// The part of `tradewind watch` that is seen in a terminal: the view itself, one frame of it, or its figures.
#ifndef TRADEWIND_CLI_WATCH_TERM_H
#define TRADEWIND_CLI_WATCH_TERM_H

#include "cli/cli.h"

// Options of it.
#define WATCH_TERM_FLAGS "--once"

bool watch_term(const cli_options *o, err *e);

#endif

// The part of `tradewind watch` that is read with other programs: the page, CSV, and files of TensorBoard.
#ifndef TRADEWIND_CLI_WATCH_WEB_H
#define TRADEWIND_CLI_WATCH_WEB_H

#include "cli/cli.h"

// Options of it, with a value and without.
#define WATCH_WEB_VALUES "--web --bind --host --csv"
#define WATCH_WEB_FLAGS  "--tensorboard"

// True where one of the options was given that make it this part's work.
bool watch_web_asked(const cli_options *o);
bool watch_web(const cli_options *o, err *e);

extern const char watch_web_help[];

#endif

// `tradewind walk --check`: leaks looked for, and a line a rule.
#ifndef TRADEWIND_CLI_CHECKING_H
#define TRADEWIND_CLI_CHECKING_H

#include "cli/cli.h"

// ERR_RUN where a leak is found, with the rules that found it.
bool checking_run(const cli_options *o, err *e);

#endif

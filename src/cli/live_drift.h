// `tradewind live --drift`: the newest answers of a session beside the run's validation.
#ifndef TRADEWIND_CLI_LIVE_DRIFT_H
#define TRADEWIND_CLI_LIVE_DRIFT_H

#include "cli/cli.h"

bool live_drift(const cli_options *o, const char *state, err *e);

#endif

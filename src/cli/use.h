// A trained run or ensemble as the words and options of evaluate and predict ask for it.
#ifndef TRADEWIND_CLI_USE_H
#define TRADEWIND_CLI_USE_H

#include "cli/cli.h"
#include "task/trained.h"

// The first word is the run, the others are overrides of its description; --data, --part and --test choose the samples.
bool use_open(trained *t, const cli_options *o, err *e);

#endif

// What a run's directory says about the run: its description and its plan, as YAML.
#ifndef TRADEWIND_CLI_TEXTS_H
#define TRADEWIND_CLI_TEXTS_H

#include "cli/setup.h"

// The description, complete; the caller frees it. NULL on failure.
char *texts_config(const setup *s, err *e);

#endif

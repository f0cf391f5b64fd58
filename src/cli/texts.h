// What a run's directory says about the run: its description and its plan, as YAML.
#ifndef TRADEWIND_CLI_TEXTS_H
#define TRADEWIND_CLI_TEXTS_H

#include "cli/setup.h"

// The description, complete; the caller frees it. NULL on failure.
char *texts_config(const setup *s, err *e);

// All that decides the bits of a run beside its description: device and instruction set, precision, who computes
// products where that is not by the device's rule, batch, the data's size and labels. The number of threads does not.
// What is computed again and where the data lie, which decide none, stand there too: with the batch they are the
// planner's choice, or what was tuned, and when; and so do threads that were tuned. The caller frees it. NULL
// on failure.
char *texts_plan(const setup *s, err *e);

#endif

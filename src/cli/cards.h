// The cards of this machine, and what the plug-in has for each, as `doctor` prints them.
#ifndef TRADEWIND_CLI_CARDS_H
#define TRADEWIND_CLI_CARDS_H

#include "graph/device.h"

#include <jansson.h>
#include <stdio.h>

// Prints the architectures that the plug-in was built for, the driver that it needs, and the cards with their numbers,
// those that are too old too; where kernels come from PTX, whether the driver can keep what it compiles. Prints nothing
// without a plug-in (NULL).
void cards_print(const device *plugin, FILE *out);

// Puts the same into `to`: built_for, needs_cuda, cards and ptx.
void cards_json(const device *plugin, json_t *to);

#endif

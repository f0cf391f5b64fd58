// A card that is not here: a device of so much memory that plans can be made for, and nothing else.
//
// The CUDA plug-in, which loads without a card, tells the memory that its kernels need, and what it was built for: a
// card that it has no machine code for computes in what its PTX has. Without the plug-in the CPU's kernels stand in,
// and the figures are an estimate. So is the base, which no monitor counts.
#ifndef TRADEWIND_CLI_ABSENT_H
#define TRADEWIND_CLI_ABSENT_H

#include "graph/device.h"

// The card of `memory` ("8GB", of 2^30 bytes, or "8000MB", of 10^6) and `arch` ("sm_86"; NULL: the newest that the
// plug-in was built for, sm_80 without it), of which there is one at a time. NULL, ERR_INPUT, where these are not
// understood.
const device *absent_card(const char *memory, const char *arch, err *e);

#endif

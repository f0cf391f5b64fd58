// Switches of a card's queue, from the environment variable TRADEWIND_CUDA: words with commas between them.
//
//   debug                                calls are launched one by one, and the first failure names its operator
//   fuse=0 head=0 early=0 product=0      does without one of the ways that make a card fast (doc/engine.md)
//   blaslt=0, blaslt=PATH                does without cuBLASLt, or opens this file
#ifndef TRADEWIND_CLI_SWITCHES_H
#define TRADEWIND_CLI_SWITCHES_H

#include "base/err.h"
#include "graph/device.h"

// The switches; all zero where the variable is missing. False, with the reason, for an unknown word. A path in them is
// valid until the next call.
bool switches_read(card_switches *s, err *e);

#endif

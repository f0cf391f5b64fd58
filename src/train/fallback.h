// When fp16 gives up: the rule by which a run whose gradients overflow goes on in another precision.
//
// A gradient that overflows halves the loss scale and its step is skipped, which changes nothing but the counts. After
// FALLBACK_OVERFLOWS such steps in a row the scale, which is LOSS_SCALE_MOST at most, has long been at its floor: what
// overflows is no longer the scale's doing. The host looks at the count at the end of an epoch and after every
// FALLBACK_LOOK steps of it, whatever else it does in between: a run changes over at the same step however often it was
// stopped and wherever its data lie. Pure: the trainer reads the counts and does the rest.
#ifndef TRADEWIND_TRAIN_FALLBACK_H
#define TRADEWIND_TRAIN_FALLBACK_H

#include "graph/types.h"

#include <stdbool.h>
#include <stdint.h>

enum { FALLBACK_OVERFLOWS = 100, FALLBACK_LOOK = 1024 };

// The verdict: go on, change over to the other precision, or end the run, which has none.
typedef enum { FALLBACK_STAY, FALLBACK_CHANGE, FALLBACK_END } fallback_verdict;

// `in_a_row`: steps without a finite gradient, the last one included; `other`: there is a precision to change to.
fallback_verdict fallback_judge(precision p, double in_a_row, bool other);

// How many steps there are from so many of an epoch to the next look, 1 at least. Steps that are played at once do not
// go beyond it.
int64_t fallback_ahead(int64_t steps);

// The precision that stands in for fp16 on a device.
precision fallback_of(bool computes_bf16);

#endif

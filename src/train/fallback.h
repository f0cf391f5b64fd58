// When fp16 gives up: the rule by which a run whose gradients overflow goes on in another precision.
//
// A gradient that overflows halves the loss scale and its step is skipped, which changes nothing but the counts. After
// FALLBACK_OVERFLOWS such steps in a row the scale, which is LOSS_SCALE_MOST at most, has long been at its floor: what
// overflows is no longer the scale's doing. The host looks at the count at the end of an epoch and at certain steps
// within it, which depend on nothing but the job, so that a run that was stopped changes over at the step at which one
// never stopped does. Pure: the trainer reads the counts and does the rest.
#ifndef TRADEWIND_TRAIN_FALLBACK_H
#define TRADEWIND_TRAIN_FALLBACK_H

#include "graph/types.h"

#include <stdbool.h>

enum { FALLBACK_OVERFLOWS = 100, FALLBACK_LOOK = 1024 };

// What to do: go on, change over to the other precision, or end the run, which has none.
typedef enum { FALLBACK_STAY, FALLBACK_CHANGE, FALLBACK_END } fallback_verdict;

// `in_a_row`: steps without a finite gradient, the last one included; `other`: there is a precision to change to.
fallback_verdict fallback_judge(precision p, double in_a_row, bool other);

// Whether to look after so many steps of an epoch: about every FALLBACK_LOOK of them. `together` are played at once.
bool fallback_looks(int64_t steps, int together);

// What stands in for fp16 on a device.
precision fallback_of(bool computes_bf16);

#endif

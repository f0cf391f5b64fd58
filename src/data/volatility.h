// Volatility: the root mean square of the one-bar log returns of the last n bars, bar by bar.
//
// It is known at the bar itself. Bands and barriers of labels are multiples of it.
#ifndef TRADEWIND_DATA_VOLATILITY_H
#define TRADEWIND_DATA_VOLATILITY_H

#include "base/err.h"
#include "data/bar.h"

#include <stddef.h>

typedef struct volatility volatility;

// Over 1..LABEL_BARS_MOST bars. NULL where memory is short.
volatility *volatility_new(int64_t bars, err *e);
void volatility_free(volatility *v);

// After the bar that has just closed; negative until it is known, at bar n.
double volatility_push(volatility *v, const bar *b);

// The state after the bars pushed so far, as with features.
size_t volatility_state(const volatility *v);
void volatility_save(const volatility *v, double *to);
bool volatility_load(volatility *v, const double *from);

#endif

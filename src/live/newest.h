// The run that a session takes: a run's or an ensemble's directory as it is, or the newest trained fold of a walk.
#ifndef TRADEWIND_LIVE_NEWEST_H
#define TRADEWIND_LIVE_NEWEST_H

#include "base/err.h"

// The path, which the caller frees; NULL where a walk has no fold that is trained to its end.
char *live_newest(const char *word, err *e);

#endif

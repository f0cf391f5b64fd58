// Frames: coarser bars made of finer ones.
//
// A coarse bar holds the fine bars that open within its span, which is counted from midnight UTC. It is known when its
// span is over, whether or not fine bars are missing in it. The first and the last are left out where the fine bars do
// not reach over all of their span: they would be other bars than the market had.
#ifndef TRADEWIND_DATA_FRAME_H
#define TRADEWIND_DATA_FRAME_H

#include "base/err.h"
#include "data/bar.h"

#include <stddef.h>

// Reads "5m", "1h", "90s", "1d", also "M5", "H1", "D1", as seconds: up to a day. False where it is none.
bool frame_read(const char *text, size_t n, int64_t *span);

// Coarse bars of `to` seconds from bars of `span`, whose times rise. `*made` is the caller's to free. ERR_INPUT where
// `to` is no multiple of `span` or does not divide a day, or where no coarse bar is whole; `name` begins the message.
bool frame_make(
    const bar *bars, int64_t count, int64_t span, int64_t to, const char *name, bar **made, int64_t *n, err *e);

#endif

// A wish to stop that came from outside, such as Ctrl-C: set once, asked now and then by long work.
//
// It is for work that has no callback of its own and leaves nothing behind when it ends early: reading, building and
// writing datasets. Training is told by its watcher instead.
#ifndef TRADEWIND_BASE_STOP_H
#define TRADEWIND_BASE_STOP_H

#include "base/err.h"

// Safe in a signal handler. True for the first of all calls, though several threads may be interrupted at once.
bool stop_ask(void);
bool stop_asked(void);

// False, with ERR_RUN, once stop_ask was called.
bool stop_go_on(err *e);

#endif

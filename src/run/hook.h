// A command of the user's that is told what happens in a run: each event as a JSON object on its standard input.
//
// It is started by /bin/sh and never waited for while a run goes on: one at a time, 30 seconds at most, then it is
// killed with all that it has started. Events that come meanwhile wait, 64 at most; then the oldest are dropped. What
// it prints goes to the end of a file. It may read nothing, fail, hang or be missing: the run goes on, and is told why.
#ifndef TRADEWIND_RUN_HOOK_H
#define TRADEWIND_RUN_HOOK_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hook hook;

// Events that a command can be told, as words and as bits.
typedef enum { HOOK_FINISHED, HOOK_FAILED, HOOK_BEST, HOOK_MEMORY, HOOK_STOP, HOOK_EVENTS } hook_event;

const char *hook_event_name(hook_event k);
bool hook_event_find(const char *name, hook_event *k);

typedef struct {
    const char *command;
    unsigned events; // bits 1 << hook_event
    const char *dir; // of the run
    double seconds;  // that a command may take; 0: 30
} hook_options;

// NULL where there is no command; all calls take NULL, and do nothing then.
hook *hook_new(const hook_options *o);

// Tells an event, with members of `more`, which is taken over and may be NULL.
void hook_tell(hook *h, hook_event k, const char *text, json_t *more);

// Starts and ends what is due. True where a command failed since the last call: `why` says how. Without a command at
// work it costs nothing.
bool hook_tick(hook *h, char *why, size_t room);

// Waits until all events are told, and ends what hangs: twice the time of a command at most.
void hook_finish(hook *h);

void hook_free(hook *h);

#endif

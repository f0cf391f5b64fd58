// Commands that are forks of a process which has begun already (shim_stem.h): thousands of the same one, each with
// another fault. How a command ends is what it is where it is started anew; only its start takes no time.
#ifndef TRADEWIND_TEST_FAULT_STEM_H
#define TRADEWIND_TEST_FAULT_STEM_H

#include <stdbool.h>

#include "fault/kinds.h"

// Runs a command with a fault, or with none (NULL), as fault_start would; its end, as waitpid has it.
int stem_run(const char *const *words, const fault *f, const char *mark);

// The same by a trunk, for an allocation that fails: false where none reaches it, and the command has not been run
// then. A status that is not 0 is that of a trunk which has tried, and may have changed its inputs.
bool stem_grow(const char *const *words, const fault *f, const char *mark, int *status);

// The inputs are about to change: no trunk may go on with them.
void stem_fell(void);

// Ends all of them, so that their time is told of this process's children.
void stem_leave(void);

#endif

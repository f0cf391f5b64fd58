// The program on a card of the test: a copy of it with a plug-in beside it (fake_card.c), which the variable FAKE_CARD
// tells what to show.
#ifndef TRADEWIND_TEST_CLI_ON_CARD_H
#define TRADEWIND_TEST_CLI_ON_CARD_H

#include "cli/program.h"
#include "support.h"

#include <stdlib.h>

#define LIMIT      "gpu_optimization.max_memory_gb="
#define HOST_LIMIT "gpu_optimization.max_host_memory_gb="
#define SPLIT_OPEN "gpu_optimization.dynamic_batch_sizing=true"

// Enters a copy of the program, with a plug-in beside it or none.
static inline void enter(const char *plugin) {
    program_copy(TRADEWIND_BINARY, plugin);
    put_small_run();
}

static inline int leave_copy(void **state) {
    program_use(TRADEWIND_BINARY);
    unsetenv("FAKE_CARD");
    unsetenv("FAKE_DRIVER");
    unsetenv("FAKE_CARDS");
    unsetenv("FAKE_BUILT");
    return support_leave(state);
}

#endif

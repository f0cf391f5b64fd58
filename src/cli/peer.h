// The PyTorch peer of a bench case, run as a child process where Python with torch is found.
#ifndef TRADEWIND_CLI_PEER_H
#define TRADEWIND_CLI_PEER_H

#include "base/json.h"

// Runs `python3 SCRIPT --device DEVICE --threads THREADS --batch BATCH CASE` and calls `on_line` with every JSON object
// that it prints. False, with `why` filled, where Python, torch or the script is missing or fails.
typedef struct {
    const char *script, *device, *name;
    int threads;
    int64_t batch;
} peer_case;

bool peer_run(const peer_case *c, void (*on_line)(void *arg, const json_t *line), void *arg, err *why);

#endif

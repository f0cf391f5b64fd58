// The PyTorch peer of a bench case, run as a child process where Python with torch is found.
#ifndef TRADEWIND_CLI_PEER_H
#define TRADEWIND_CLI_PEER_H

#include "base/json.h"

#include <stdint.h>

typedef struct {
    const char *script, *device, *name;
    int threads;
    int64_t batch;                  // 0: the case's own
    int64_t hidden, window, layers; // of an lstm; 0: the case's own
    bool quick;                     // on a card: few steps, and only as a CUDA graph, the fastest way for an lstm
} peer_case;

// True if the script and Python with torch are there; takes seconds.
bool peer_ready(const char *script, err *why);

// Runs `python3 SCRIPT --device DEVICE ... CASE` and calls `on_line` with every JSON object that it prints. False, with
// `why` filled, where it fails or prints none that has figures.
bool peer_run(const peer_case *c, void (*on_line)(void *arg, const json_t *line), void *arg, err *why);

#endif

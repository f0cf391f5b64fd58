// The memory plan of a run as a document of its directory, memory.json (run/results.h): for whoever draws it.
#ifndef TRADEWIND_TASK_MEMORY_MAP_H
#define TRADEWIND_TASK_MEMORY_MAP_H

#include "base/log.h"
#include "train/engine.h"

// Writes the blocks of a plan and the bytes by purpose (NULL: not known). A run does not need it: where it cannot be
// written the log has the reason, and false comes back with the line.
bool memory_map_write(const char *dir, const plan *p, const graph *g, const engine_memory *m, log_file *log, err *why);

#endif

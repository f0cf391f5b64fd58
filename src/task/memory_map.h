// The memory plan of a run as a document of its directory, memory.json (run/results.h): for whoever draws it.
#ifndef TRADEWIND_TASK_MEMORY_MAP_H
#define TRADEWIND_TASK_MEMORY_MAP_H

#include "base/log.h"
#include "train/budget.h"
#include "train/engine.h"

typedef struct {
    const plan *plan;
    const graph *graph;
    engine_memory bytes;  // by purpose
    const budget *budget; // that the plan was chosen under; NULL: the job is placed in a space of others
    demand demand;        // of the whole plan
} memory_map;

// Writes the blocks of a plan, the bytes by purpose, and the room that a limit leaves to the blocks. A run does not
// need it: where it cannot be written the log has the reason, and false comes back with the line.
bool memory_map_write(const char *dir, const memory_map *m, log_file *log, err *why);

#endif

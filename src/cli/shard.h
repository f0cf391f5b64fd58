// --shard of walk: which share of the folds a process trains.
#ifndef TRADEWIND_CLI_SHARD_H
#define TRADEWIND_CLI_SHARD_H

#include "task/walk.h"

// Reads "2/4", or "auto" and "auto/4": the number that a Slurm array or a Kubernetes indexed job has given the process
// in the environment. Kubernetes does not tell how many there are, unless the job sets JOB_COMPLETIONS.
bool shard_read(const char *text, walk_options *w, err *e);

#endif

// Number of trials: settings that were tried on a set, for statistics that doubt the best of many.
#ifndef TRADEWIND_TASK_TRIALS_H
#define TRADEWIND_TASK_TRIALS_H

#include <stdint.h>

// Distinct descriptions, seed and run.dir aside, among the runs below the parent of a run's directory whose data are
// the same as that run's, itself included: at least 1. An ensemble or a walk counts once, and a member or fold stands
// for the whole. Runs that cannot be read do not count.
int64_t trials_count(const char *run);

#endif

// A pool of threads that share out the items of one call at a time.
//
// Items are handed out dynamically, so an item's work must not depend on which worker does it: results then are the
// same for any number of threads. The calling thread works too. No allocation after pool_new.
#ifndef TRADEWIND_BASE_POOL_H
#define TRADEWIND_BASE_POOL_H

#include "base/err.h"

#include <stdint.h>

typedef struct pool pool;

// Does item `item`; `worker` is below pool_threads and names scratch space that no other running item uses.
typedef void pool_fn(void *arg, int64_t item, int worker);

// `threads` counts the caller; 0 means one per processor that this process may use.
pool *pool_new(int threads, err *e);
void pool_free(pool *p);
int pool_threads(const pool *p);

// Processors that this process may run on (its affinity mask and its cgroup's quota).
int pool_processors(void);

// Runs fn for every item in 0..items-1 and returns when all are done. Several threads may call it: while one call has
// the workers, the others run their items in order, each on its own thread, as does a call with a NULL pool. Not
// re-entrant.
void pool_run(pool *p, int64_t items, pool_fn *fn, void *arg);

#endif

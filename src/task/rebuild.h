// A run's set made anew of another file of bars: the overrides of its description that ask for it.
#ifndef TRADEWIND_TASK_REBUILD_H
#define TRADEWIND_TASK_REBUILD_H

#include "task/open.h"

enum { REBUILD_MOST = 128 };

typedef struct {
    char *own[REBUILD_MOST];
    int owned;
    const char *overrides[REBUILD_MOST]; // these, then the user's, which win
    int count;
} rebuild;

// The task is on its own data, which were made of bars. Where the description names bar files, `file` takes the place
// of the finest one of the instrument; where it names a set from import, features, frames, labels and the file's clock
// are as that set says. ERR_INPUT where this cannot be done. To be given back by rebuild_done, also on failure; the
// user's overrides must outlive it.
bool rebuild_make(rebuild *r, const task *t, const char *file, const char *symbol, const char *const *overrides,
    int override_count, err *e);
void rebuild_done(rebuild *r);

// The reason why no set could be made of a file, which is in `e`: bars of another span than the run's finest ones say
// so in their own words. False.
bool rebuild_refuse(const char *file, int64_t span, err *e);

#endif

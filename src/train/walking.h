// The section `walk` of a description: how folds are made, and how they are run.
#ifndef TRADEWIND_TRAIN_WALKING_H
#define TRADEWIND_TRAIN_WALKING_H

#include "base/config.h"
#include "data/scheme.h"

typedef struct {
    scheme scheme; // its windows are set by whoever knows the data
    int64_t fold;  // number from 1 of the fold that a run is of; 0: none
    bool warm;     // a fold begins with the weights of the one before
    int jobs;      // folds at once; 0: open
} walking;

const config_key *walking_keys(size_t *count);

// Reads the section of a description that config_check has passed; one that is not there has its usual values. Purge
// and embargo are those of data.split, in moments.
bool walking_read(const config *c, int64_t purge, int64_t embargo, walking *w, err *e);

// True where a description asks for folds.
bool walking_given(const config *c);

// The split of fold `w->fold`. ERR_INPUT where the data have no such fold, or it cannot be trained.
bool walking_split(const walking *w, const dataset *d, const int64_t *window, split *s, err *e);

#endif

// The section `walk:` of a description: scheme of folds, spans and how many run side by side.
//
// Spans are a number of bars (2000), a time (12h, 180d, 4w, 24M, 2y) or, for training, the date at which that of the
// first fold ends (data/extent.h).
#ifndef TRADEWIND_TRAIN_WALK_KEYS_H
#define TRADEWIND_TRAIN_WALK_KEYS_H

#include "base/config.h"
#include "data/scheme.h"

typedef struct {
    scheme scheme;   // without windows, which are the model's
    bool warm;       // a fold begins with the weights of the one before
    bool importance; // of columns is measured in every fold
    int jobs;        // at a time; 0: as many as fit
    int64_t fold;    // number from 1 of the fold that a run is of; 0: none
} walk_settings;

const config_key *walk_keys(size_t *count);

// Reads the section after config_check. ERR_INPUT names the key.
bool walk_read(const config *c, walk_settings *w, err *e);

// True where a description asks for folds.
bool walk_given(const config *c);

// The parts of fold `w->fold`. ERR_INPUT where the data have no such fold, or it cannot be trained.
bool walk_split(const walk_settings *w, const dataset *d, const int64_t *window, split *s, err *e);

#endif

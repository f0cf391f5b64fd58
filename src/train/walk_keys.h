// The section `walk:` of a description: scheme of folds, spans, seeds and how many run side by side.
//
// Spans are a number of bars (2000), a time (12h, 180d, 4w, 24M, 2y) or, for training, the date at which that of the
// first fold ends (data/extent.h).
#ifndef TRADEWIND_TRAIN_WALK_KEYS_H
#define TRADEWIND_TRAIN_WALK_KEYS_H

#include "base/config.h"
#include "data/scheme.h"

typedef struct {
    scheme scheme; // without windows, which are the model's
    bool warm;     // a fold begins with the weights of the one before
    int64_t seeds; // of each fold, from train.seed on
    int64_t jobs;  // at a time; 0: as many as fit
} walk_settings;

const config_key *walk_keys(size_t *count);

// Reads the section after config_check. ERR_INPUT names the key.
bool walk_read(const config *c, walk_settings *w, err *e);

#endif

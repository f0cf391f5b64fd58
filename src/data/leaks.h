// Leaks that tests plant, so that `walk --check` is shown to find them.
//
// For tests alone: the program never sets a hook, and no key or option does. Each stands where such a mistake would
// stand, and whatever it changes is used from there on, in training too.
#ifndef TRADEWIND_DATA_LEAKS_H
#define TRADEWIND_DATA_LEAKS_H

#include "data/build.h"
#include "data/scheme.h"

typedef struct {
    const build_source *(*bars)(const build_source *from); // before anything is computed
    void (*built)(dataset *d);                             // features, samples, labels
    void (*folds)(const dataset *d, scheme_folds *f);      // parts of every fold
    const split_part *(*fitted)(const dataset *d, const split_part *train, split_part *room); // samples of a scaler
    void (*observed)(float *feature, int64_t rows, int64_t width); // features that an agent sees, of each bar
} leaks;

extern leaks leaks_planted; // zeros: none

#endif

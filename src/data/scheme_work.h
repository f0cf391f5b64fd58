// Parts of scheme_make. For data/scheme*.c alone.
#ifndef TRADEWIND_DATA_SCHEME_WORK_H
#define TRADEWIND_DATA_SCHEME_WORK_H

#include "data/ruler.h"
#include "data/scheme.h"

typedef struct {
    const dataset *d;
    const scheme *s;
    ruler ruler;
    uint8_t *out; // [samples] 1: left out of training, or of validation
} scheme_work;

// Fill the folds of each kind; `to->fold` is the caller's to free, also on failure.
bool scheme_walk(scheme_work *w, scheme_folds *to, err *e);
bool scheme_combine(scheme_work *w, scheme_folds *to, err *e);

// Makes a part of the samples of a span that are not marked. Where these are more spans than a part has room for, the
// shortest are left out too.
bool scheme_keep(const scheme_work *w, span from, split_part *part, err *e);

// Says why a fold cannot be trained, where that is so.
void scheme_judge(const scheme_work *w, scheme_fold *f);

#endif

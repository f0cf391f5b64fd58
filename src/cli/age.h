// Age of a dataset's newest bars: answers to old bars, or with coarser streams that are out of date, are not what they
// seem.
#ifndef TRADEWIND_CLI_AGE_H
#define TRADEWIND_CLI_AGE_H

#include "base/json.h"
#include "data/dataset.h"

#include <stdio.h>

// The newest close of all instruments.
int64_t age_newest(const dataset *d);

// Lines where the newest bars are old, or those of an instrument much older than the others'.
void age_tell(const dataset *d, FILE *out);

// Complaints about the newest bars of the coarser streams of a series, as texts; -1: of all. NULL where there are none.
json_t *age_late(const dataset *d, int64_t series);

#endif

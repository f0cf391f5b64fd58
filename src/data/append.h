// What a dataset of bars says of its making, read back so that further bars can be added in the same way.
#ifndef TRADEWIND_DATA_APPEND_H
#define TRADEWIND_DATA_APPEND_H

#include "data/bars.h"
#include "data/build.h"

// The options that a dataset was made with. Texts are the dataset's. ERR_INPUT where it is not of bars, or keeps
// neither bars nor state, as those of older versions.
bool append_options(const dataset *old, build_options *o, bars_options *reading, err *e);

// The words of the dataset that it became, with the checks that were overruled (bits of bars_force) added; NULL where
// memory is short.
json_t *append_about(const dataset *old, const dataset *now, unsigned forced);

#endif

// Names of keys that people bring from elsewhere, PyTorch's above all.
#ifndef TRADEWIND_TRAIN_NAMES_H
#define TRADEWIND_TRAIN_NAMES_H

#include "base/config.h"

// Every name is taken at the top level and in the section that it usually has.
const config_name *names_all(size_t *count);

#endif

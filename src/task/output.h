// Files that a command writes: none ever takes the place of an input or of a file of another kind.
#ifndef TRADEWIND_TASK_OUTPUT_H
#define TRADEWIND_TASK_OUTPUT_H

#include "base/err.h"

// The entry that makes an .npz an output of predict.
extern const char output_mark[];

typedef enum {
    OUTPUT_SET,     // a dataset
    OUTPUT_ANSWERS, // probabilities or forecasts, .npz or .csv
    OUTPUT_TRADES,  // trades of a backtest, .csv
    OUTPUT_REPORT,  // a page or a figure of a report
    OUTPUT_INTENTS, // lines of `live --exec`, to be appended to
} output_kind;

// True where a file may be written: nothing is there, or an empty file, or one of the same kind. ERR_INPUT where it is
// one of the inputs, by whatever name, or of another kind.
bool output_may_replace(const char *path, output_kind kind, const char *const *inputs, int count, err *e);

#endif

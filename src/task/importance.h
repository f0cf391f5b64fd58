// Importance of columns by permutation: how much worse a score gets where one column says nothing any more.
//
// One column after the other is put in random order, all others stay, and the part is answered again. Of a stream the
// rows that windows of the part can see are permuted among each other, so a window then holds values of the column
// from anywhere in the part, without their order in time; rows of several instruments are mixed. The vector has a row a
// sample, and samples are permuted. The order is a function of the run's seed and the column's number alone. Columns
// that say the same stand in for each other: each then seems to matter little.
#ifndef TRADEWIND_TASK_IMPORTANCE_H
#define TRADEWIND_TASK_IMPORTANCE_H

#include "base/json.h"
#include "task/trained.h"

typedef struct {
    void (*done)(void *arg, int columns, int of); // called after every column; or NULL
    void *arg;
} importance_listener;

// A list of {stream, column, metric, drop} over all columns of all streams and the vector, in their order. The metric
// is the usual one of what the run predicts, a drop above 0 always means worse. ERR_INPUT for an ensemble. The run's
// predictor is given up: nothing can be asked of it afterwards. NULL on failure.
json_t *task_importance(trained *t, const importance_listener *l, err *e);

#endif

// Several models on one set: descriptions that are trained one after another, each as the run or ensemble that it
// describes, and one table of what they score.
//
// Nothing but the runs' own directories is written. The table is made of them, so that models which were trained before
// stand in it like the others:
//   interrupted      true where a model was stopped; those behind it have not begun
//   same_test        false where test parts differ, so that scores are not of the same samples
//   models           a list of:
//     description, directory, model, parameters, status (done, stopped, failed, not begun), reason
//     best_epoch, metric, validation   of the best epoch; null of an ensemble
//     samples_per_s    mean over all epochs; of an ensemble over those of its members
//     test             {part, samples, metric, score, trivial, trivial_score, skill}
#ifndef TRADEWIND_TASK_MODELS_H
#define TRADEWIND_TASK_MODELS_H

#include "task/open.h"

// Trains what each file describes, or goes on with the first that is not done (`resume`) and leaves those that are as
// they are. `o` has everything that the descriptions share. Before the first begins all are read, planned and compared:
// ERR_INPUT where two have one directory or are of other sets. A model that fails is told in the table, and the others
// are trained; false then.
bool task_models(const task_options *o, const char *const *file, int files, err *e);

#endif

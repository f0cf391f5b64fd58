// Two runs compared: is the difference between their scores more than noise?
//
// Where both keep answers to the same samples (predictions_PART.npz, by evaluate), the answers are compared in pairs by
// the block bootstrap (train/bootstrap.h), for these weights. Where both are ensembles, members trained with other
// seeds are compared by Welch's interval, for runs of this description. Where both are walks, folds with the same test
// are compared in pairs by Student's interval. Else nothing can be told.
#ifndef TRADEWIND_TASK_COMPARE_H
#define TRADEWIND_TASK_COMPARE_H

#include "base/json.h"
#include "train/bootstrap.h"

typedef enum { COMPARE_NOTHING, COMPARE_ANSWERS, COMPARE_SEEDS, COMPARE_FOLDS } compare_way;

typedef struct {
    compare_way way;
    char part[16], metric[16]; // of answers the part; MCC, or MAE of forecasts; of seeds train.metric
    int64_t samples;           // that both have answered; of seeds and folds 0
    int members[2];            // of seeds
    int folds;                 // with the same test
    double score[2], difference;
    interval range; // 95 % of the difference, the second less the first; NaN where there are too few samples
    char why[256];  // of COMPARE_NOTHING
} comparison;

// ERR_RUN where memory is short. Files that cannot be read are none.
bool compare_runs(const char *first, const char *second, comparison *c, err *e);

// The interval of the difference of two means, the second less the first, by Welch.
interval compare_means(const double *a, int n, const double *b, int m);

// The interval of the mean of n differences in pairs, the second less the first, by Student.
interval compare_pairs(const double *a, const double *b, int n);

// Calls `use` with every two folds of two walks (documents of walk.json, or NULL) that were tested on the same time, of
// cpcv on the same groups.
void compare_each_fold(
    const json_t *first, const json_t *second, void (*use)(void *arg, json_t *a, json_t *b), void *arg);

#endif

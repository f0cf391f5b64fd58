// Tests of all folds of a walk together: scores, confusion, calibration and importance of columns.
//
// Scores are those of all samples that were tested: each fold's own answers, and each fold's own trivial ones. Folds
// are added in their order, so that sums have the same bits every time.
#ifndef TRADEWIND_TASK_WALK_POOL_H
#define TRADEWIND_TASK_WALK_POOL_H

#include "task/calibration.h"
#include "task/evaluation.h"

typedef struct {
    int folds; // that were added
    int rows;
    skill_metric metric[SKILL_ROWS_MOST];
    double score[SKILL_ROWS_MOST], trivial[SKILL_ROWS_MOST]; // sums over samples; of RMSE of squares
    int64_t samples;
    int classes;
    int64_t confusion[CLASSES_MOST * CLASSES_MOST];
    calibration calibration;
    json_t *importance; // list of {stream, column, metric, drops: one a fold}; NULL: not measured
} walk_pool;

// The caller gives it back by walk_pool_free.
walk_pool *walk_pool_new(void);
void walk_pool_free(walk_pool *p);

// Adds the test of a fold, and puts its scores into the fold's object: metrics, trivial, skill, confusion.
void walk_pool_add(walk_pool *p, const evaluation *v, json_t *fold);

// Adds what task_importance says of a fold, whose columns are those of all.
void walk_pool_add_importance(walk_pool *p, const json_t *list);

// Puts everything into the walk's document: metrics, trivial, skill, classes, confusion, calibration or coverage, and
// importance: {stream, column, metric, drop, low, high, folds} with the mean drop over the folds, the least and the
// largest.
void walk_pool_put(const walk_pool *p, const dataset *d, json_t *doc);

#endif

// Scores beside those of trivial answers on the same rows, with intervals: is a model better than no model?
//
// Skill is 1 - score / trivial where lower is better (log loss, RMSE, MAE, sMAPE, MASE), so 1 is perfect, 0 as good as
// the trivial answer, below 0 worse; and score - trivial where higher is better (accuracy, MCC). The trivial answer is
// the best of those that have the metric. Intervals are 95 % by block bootstrap (train/bootstrap.h).
//
// Units of the bootstrap are moments: samples of one time, of all instruments together, are drawn together. A panel
// without times has its series as units, in blocks of one. Where the named series of a dataset are instruments (it has
// times and holds nothing out) and there are answers, each also has a group of its own, over the same blocks. A group
// with samples in fewer units than two blocks has no intervals.
#ifndef TRADEWIND_TRAIN_SKILL_H
#define TRADEWIND_TRAIN_SKILL_H

#include "train/bootstrap.h"
#include "train/trivial.h"

typedef enum {
    SKILL_LOG_LOSS,
    SKILL_ACCURACY,
    SKILL_MCC,
    SKILL_RMSE,
    SKILL_MAE,
    SKILL_SMAPE,
    SKILL_MASE,
    SKILL_METRICS
} skill_metric;

enum { SKILL_ROWS_MOST = 4 };

// As people write it, and as JSON has it; and true where higher is better, so that skill is a difference.
const char *skill_title(skill_metric m);
const char *skill_name(skill_metric m);
bool skill_differs(skill_metric m);

// A score in digits that suit its metric, written into `text`.
const char *skill_figure(skill_metric m, double v, char *text, size_t room);

typedef struct {
    const dataset *data;
    split_part samples;
    unsigned task; // METRIC_CLASSES and so on (train/metric.h)
    const float
        *answer;       // [count, width] probabilities or forecasts, of which columns from `at` on count; NULL: trivial
    int64_t width, at; // answers alone are scored, without intervals
    const double *share; // [classes] of the training part, for classes
    double mean;         // of the training part's targets, where that is a trivial answer
    int64_t season;
    int64_t window; // values before a sample that MASE's naive error is taken over; 0: all that are known
} skill_input;

// NaN where a metric has no value.
typedef struct {
    skill_metric metric;
    double score, trivial[TRIVIAL_MOST], skill;
    int best; // of the trivial answers; -1: none has the metric
    interval score_range, skill_range;
} skill_row;

typedef struct {
    const char *name; // of an instrument; NULL: all together
    int64_t samples;
    int64_t units; // of the bootstrap, those with samples of the group
    skill_row row[SKILL_ROWS_MOST];
} skill_group;

typedef struct {
    int rows, trivials, groups;
    trivial_kind trivial[TRIVIAL_MOST];
    int majority;         // class of TRIVIAL_MAJORITY
    int64_t units, block; // of the bootstrap
    bool series;          // its units are series, not moments
    skill_group *group;   // [groups], all together first
} skill_table;

// On failure there is nothing to give back.
bool skill_make(const skill_input *in, skill_table *t, err *e);
void skill_done(skill_table *t);

typedef enum { SKILL_OPEN, SKILL_BETTER, SKILL_EQUAL, SKILL_WORSE } skill_verdict;

// Judges a row by its skill's interval: EQUAL where that includes 0, OPEN where there is none.
skill_verdict skill_judge(const skill_row *r);

#endif

// A trained run or ensemble, opened to be used.
#ifndef TRADEWIND_TASK_TRAINED_H
#define TRADEWIND_TASK_TRAINED_H

#include "data/panel.h"
#include "task/data_notes.h"
#include "train/series.h"
#include "train/skill.h"

typedef struct {
    const char *run;              // a run's directory, whose best weights are taken, or a file of weights in one; or an
                                  // ensemble's directory, all of whose members must be trained
    const char *const *overrides; // of its description
    int override_count;
    const char *data; // another set in place of the run's, whole unless `part` says otherwise; or NULL
    const char *part; // "train", "validation", "test", "all", or "future": forecasts from the ends of a panel's series;
                      // NULL: the test where there is one, all of other data
    int64_t latest;   // the newest bars of each instrument in place of a part, labelled or not; 0: not
    dataset *dataset; // in place of the run's and of `data`: the caller's, which outlives it; or NULL
    const split *parts; // of that dataset, as in task_options; or NULL
    bool every;         // of an agent: all bars of whole data, labelled or not, in place of a part
    bool live;          // of an agent: no data are played, bars come one by one (task/agent_window.h)
    bool finished;      // ERR_INPUT where the run has not come to its end
    task_devices devices;
    const char *version;    // of the program
    task_listener listener; // of TASK_CHECK
} trained_options;

typedef struct {
    task task;
    predictor *predictor; // with the run's weights, or those of an ensemble's first member
    char *weights;        // their path; the directory of an ensemble
    char *description;    // path of the run's config.yaml
    int members;          // of an ensemble; 0: none
    const char *part;
    bool no_test; // the part is validation because there is no test
    split_part samples;
    double share[CLASSES_MOST]; // of the classes in the training part
    double mean;                // of its targets; NaN: the weights do not say
    data_notes notes;           // about data that may not be meant for the weights
} trained;

// The run's directory that a word names, by itself or by a file in it; the caller frees it.
char *trained_dir(const char *word);

// The same with the file of weights, the best ones where the word is a directory; both are the caller's to free, also
// on failure. ERR_INPUT where there are none.
bool trained_find(const char *word, char **dir, char **weights, err *e);

// The contract of a run's weights, of the first member's of an ensemble; NULL in `*c` where they carry none.
bool trained_contract(const char *run, contract **c, err *e);

// False, with ERR_INPUT, where options ask for a finished run and it is none.
bool trained_has_ended(const trained_options *o, err *e);

// Inputs are scaled as they were in training. On failure everything is undone.
bool trained_open(trained *t, const trained_options *o, err *e);
void trained_close(trained *t);

// Answers of the run for its samples, [count, inference_width]: probabilities or forecasts; of an ensemble, the mean of
// its members' probabilities or the median of their forecasts. ERR_RUN where some are not finite. The caller frees it;
// NULL on failure.
float *task_predict(trained *t, err *e);

// Scores of answers that task_predict gave, beside those of trivial answers (train/skill.h).

// The score of classes on the samples. The loss of an ensemble is the mean negative logarithm of its probabilities.
bool task_evaluate(trained *t, const float *answer, score *s, skill_table *skill, err *e);

// The score of forecasts, and the loss; NaN for an ensemble, whose median is no model's forecast.
bool task_evaluate_forecasts(
    trained *t, const float *answer, series_score *s, double *loss, skill_table *skill, err *e);

// The score of forecasts from the ends of a panel's series against the values that came after them, which a panel of
// the same names has. `path` is for messages.
bool task_evaluate_test(
    trained *t, const panel *p, const char *path, const float *answer, series_score *s, skill_table *skill, err *e);

#endif

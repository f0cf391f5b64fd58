// A trained run or ensemble, opened to be used: what evaluate and predict have in common.
#ifndef TRADEWIND_CLI_TRAINED_H
#define TRADEWIND_CLI_TRAINED_H

#include "cli/setup.h"
#include "train/predictor.h"

typedef struct {
    setup s;
    predictor *predictor; // with the run's weights, or those of an ensemble's first member
    char *weights;    // their path; the directory of an ensemble
    int members;      // of an ensemble; 0: none
    const char *part; // "train", "validation", "test", "all" or "future"
    split_part samples;
} trained;

// Opens what the first word names: a run's directory, whose best weights are taken, or a file of weights in one; or an
// ensemble's directory, all of whose members must be trained.
// Further words are overrides of its description. --data takes another set in place of the run's, whole unless --part
// says otherwise; --part chooses among the parts of the split, the test where there is one. The part "future", which
// --test means too, are forecasts from the ends of a panel's series. Inputs are scaled as they were in training. On
// failure everything is undone.
bool trained_open(trained *t, const cli_options *o, err *e);
void trained_close(trained *t);

// What the run gives for the samples, [count, inference_width]: probabilities or forecasts; of an ensemble, the mean of
// its members' probabilities or the median of their forecasts. The caller frees it; NULL on failure.
float *trained_predict(trained *t, err *e);

#endif

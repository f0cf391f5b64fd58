// Answers of a trained run to its samples, each with its place in the data, and as a file.
#ifndef TRADEWIND_TASK_ANSWERS_H
#define TRADEWIND_TASK_ANSWERS_H

#include "task/trained.h"

typedef struct {
    const trained *t;
    const dataset *data;
    split_part samples;
    bool future;       // there are no targets yet
    bool latest;       // the newest bars, which have no number
    int64_t width;     // columns of an answer: classes, or quantiles times horizon
    float *answer;     // [count, width] probabilities or forecasts
    int32_t *choice;   // [count] the likeliest class; NULL of forecasts
    int64_t *sample;   // [count]
    int64_t *bar;      // [count] the bar of the sample; NULL where bars were not kept
    const char **name; // [count] of the sample's series, or NULL
    float *signal; // [count] side that the run's rule asks for, NaN where the rule is of another instrument; or NULL
} answers;

// Asks the run for the answers to its samples; to be given back by answers_done, also on failure.
bool answers_make(answers *a, trained *t, err *e);
void answers_done(answers *a);

// False where the label or the targets of an answer are not known.
bool answers_known(const answers *a, int64_t i);

// True where the sample of an answer lies in the time that the weights were trained on, as far as that is known.
bool answers_trained_on(const answers *a, int64_t i);

// Writes the answers as an .npz. The file appears whole or not at all.
bool answers_write_npz(const answers *a, const char *path, err *e);

#endif

// A trained run, opened to be used: what evaluate and predict have in common.
#ifndef TRADEWIND_CLI_TRAINED_H
#define TRADEWIND_CLI_TRAINED_H

#include "cli/setup.h"
#include "train/trainer.h"

typedef struct {
    setup s;
    trainer *trainer; // with the run's weights
    char *weights;    // their path
    const char *part; // "train", "validation", "test" or "all"
    span samples;
} trained;

// Opens what the first word names: a run's directory, whose best weights are taken, or a file of weights in one.
// Further words are overrides of its description. --data takes another set in place of the run's, whole unless --part
// says otherwise; --part chooses among the parts of the split, the test where there is one. Inputs are scaled as they
// were in training. With `scores`, trainer_predict can be used. On failure everything is undone.
bool trained_open(trained *t, const cli_options *o, bool scores, err *e);
void trained_close(trained *t);

#endif

// Keys of a description that have no effect: told, so that nobody trusts what is not read.
#ifndef TRADEWIND_TRAIN_UNUSED_H
#define TRADEWIND_TRAIN_UNUSED_H

#include "train/settings.h"

// Everything that decides which keys are read.
typedef struct {
    const config *config;
    const settings *settings;
    const dataset *data; // NULL of an agent whose environment has none
    const model_spec *model;
    bool card;     // computed on a card
    bool fp16;     // in fp16
    bool host;     // batches come from the host
    bool tunes;    // it is tuned, not trained
    bool trained;  // weights that are there are used, not trained
    bool complete; // the description was completed by the program: values as usual are not the user's
} unused_about;

// Calls `tell` for every key that was given and is not read, with the reason.
void unused_each(const unused_about *a, void (*tell)(void *arg, const char *path, const char *why), void *arg);

// True where it is known when a key is read.
bool unused_knows(const char *path);

#endif

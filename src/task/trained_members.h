// Members of a trained ensemble, for those that use it.
#ifndef TRADEWIND_TASK_TRAINED_MEMBERS_H
#define TRADEWIND_TASK_TRAINED_MEMBERS_H

#include "task/contract.h"
#include "task/data_notes.h"

// True where a run.db says that its run is not at its end. One that cannot be read says nothing: it may be lost.
bool trained_is_unfinished(const char *dir);

// The best weights of member k, from 1; the caller frees the path.
char *trained_member_weights(const char *ensemble, int k);

// Directory and weights of the first member, which stands for all until the others are asked; both are the caller's to
// free, also on failure. ERR_INPUT where they are not all trained.
bool trained_members_find(const char *word, int members, char **dir, char **weights, err *e);

// True where the weights of all members have the scales of the first one's, and agree with a contract in what `must`
// names; ERR_INPUT otherwise.
bool trained_members_agree(
    const char *ensemble, int members, const contract *is, unsigned must, const safetensors *first, err *e);

// Adds a note where the ensemble's own description, which says how many members there are, has changed since.
void trained_members_note(data_notes *n, const char *ensemble);

#endif

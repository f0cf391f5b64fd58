// Files of weights: safetensors with PyTorch's parameter names. Ours carry the number of their format as the note
// "weights", and a sum (run/sum.h); files of PyTorch have neither, and a checkpoint can be read as one.
#ifndef TRADEWIND_RUN_WEIGHTS_H
#define TRADEWIND_RUN_WEIGHTS_H

#include "run/safetensors.h"

enum { WEIGHTS_VERSION = 2 }; // 2: a sum

// Writes weights; the notes "weights" and "sum" are added.
bool weights_write(const char *path, const safetensors_entry *entries, int count, const safetensors_note *notes,
    int note_count, err *e);

// Opens weights, whoever wrote them. NULL, and ERR_INPUT, for a file that is none, that is damaged, or that is of a
// newer format.
safetensors *weights_open(const char *path, err *e);

// Identity of the best weights in a run's directory, or of all members of an ensemble: made of the sums of the files,
// so that other weights have another one. "" where it is not known: files that are not there, damaged, or without a
// sum. False where the reading of one fails.
enum { WEIGHTS_IDENTITY_ROOM = 24 };
bool weights_identity(const char *dir, char text[WEIGHTS_IDENTITY_ROOM], err *e);

#endif

// Checkpoint files: all that a run needs to go on, as safetensors in the run's directory.
//
// Names are checkpoint_epoch_N, checkpoint_step_N and last, each with .safetensors behind it. A file appears whole or
// not at all, and carries a CRC-32 of its notes and its data, so that damage done later is found too. What the tensors
// mean is not known here.
#ifndef TRADEWIND_RUN_CHECKPOINT_H
#define TRADEWIND_RUN_CHECKPOINT_H

#include "run/safetensors.h"

enum { CHECKPOINT_VERSION = 2 }; // 2: states by name, the spans of a part

// The kinds of name; CHECKPOINT_LAST has no number.
typedef enum { CHECKPOINT_EPOCH, CHECKPOINT_STEP, CHECKPOINT_LAST, CHECKPOINT_KINDS } checkpoint_kind;

// "DIR/checkpoint_epoch_50.safetensors", which the caller frees.
char *checkpoint_path(const char *dir, checkpoint_kind kind, uint64_t number);

// True if a file's name, without its directory, is that of a checkpoint.
bool checkpoint_named(const char *name, checkpoint_kind *kind, uint64_t *number);

// True if a directory has files of checkpoints; they may be damaged.
bool checkpoint_any(const char *dir);

// Writes a checkpoint of a run that has taken `step` steps. The notes "checkpoint", "step" and "sum" are added.
bool checkpoint_write(const char *path, uint64_t step, const safetensors_entry *entries, int count,
    const safetensors_note *notes, int note_count, err *e);

// False, and ERR_INPUT, for a checkpoint of a newer format than this program reads.
bool checkpoint_known(const safetensors *s, const char *path, err *e);

// Opens one whose every byte is as it was written; NULL, and ERR_INPUT, for any other and for one of a newer format.
safetensors *checkpoint_open(const char *path, err *e);

// Steps taken when it was written.
uint64_t checkpoint_step(const safetensors *s);

// Opens the whole checkpoint of a directory with the most steps and gives its path, which the caller frees. Damaged
// ones that are met on the way are told to `damaged`, with the reason. NULL, and ERR_INPUT, where there is none
// or one is of a newer format; NULL, and ERR_RUN, where one cannot be read now.
safetensors *checkpoint_newest(
    const char *dir, void (*damaged)(void *arg, const char *why), void *arg, char **path, err *e);

// Removes all but the `keep` highest numbers of a kind; 0 keeps all. Files that cannot be removed stay.
void checkpoint_rotate(const char *dir, checkpoint_kind kind, int64_t keep);

#endif

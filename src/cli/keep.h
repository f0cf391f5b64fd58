// An evaluation kept in the run's directory: evaluation.json and the answers themselves.
#ifndef TRADEWIND_CLI_KEEP_H
#define TRADEWIND_CLI_KEEP_H

#include "cli/cli.h"
#include "task/evaluation.h"

enum { KEEP_FILES = 2 };

typedef struct {
    char *file[KEEP_FILES]; // paths that were written
    int files;
    err why; // a file could not be written: no failure of the evaluation; ERR_NONE: all were
} kept;

// True where what is evaluated is to be kept: the best weights of a run's directory on a part of its own data, as they
// were described.
bool keep_wanted(const cli_options *o, const char *part);

// Notes a path, which it takes over, as written where `ok`.
void keep_note(kept *k, bool ok, char *path);

// Stores a part of the run's own data as its best weights answer it: scores in evaluation.json, answers in
// predictions_PART.npz. Nothing is stored of other data, of changed descriptions, of single files of weights, and of
// parts other than train, validation and test.
void keep_evaluation(kept *k, const cli_options *o, const evaluation *v);
void keep_done(kept *k);

// A line for the files and one for the trouble; beside JSON and with -q the trouble alone, on stderr.
void keep_tell(const kept *k, const cli_options *o);

// The files as a list, to be added as "stored".
json_t *keep_json(const kept *k);

#endif

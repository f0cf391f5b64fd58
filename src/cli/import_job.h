// An import on its way: what was asked for, and what its files share in telling.
#ifndef TRADEWIND_CLI_IMPORT_JOB_H
#define TRADEWIND_CLI_IMPORT_JOB_H

#include "base/arena.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "data/sources.h"

typedef struct {
    const cli_options *o;
    const char *out;
    int files, features;
    const char *file[WORDS_MOST];
    int place[WORDS_MOST];                      // words before each file
    const char *append;                         // the dataset that bars are added to, or NULL
    const char *feature[WORDS_MOST + OWN_MOST]; // "fast=a,b"
    build_options build;
    bars_options bars;
    int64_t horizon, history, recent, classes; // 0: not given
    arena arena;
    progress bar;
} import_job;

// Bars to a set; bars added to one.
bool import_bars(import_job *j, err *e);
bool import_append(import_job *j, err *e);

// False with --json and -q.
bool import_says(const import_job *j);

// Tells what the user should know also with --json and -q.
void import_warn(const import_job *j, const char *label, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// Warns of coarser streams whose newest bars are older than they should be.
void import_warn_late(const import_job *j, const dataset *d);

// "2,310"; "1 bar", "2,310 bars".
const char *import_count(char text[32], int64_t n);
const char *import_count_of(char text[48], int64_t n, const char *what);

// The summary of a dataset that has been written, read back from the file. `made` is what else --json tells, or NULL;
// it is taken over.
bool import_summarise(const import_job *j, json_t *made, err *e);

#endif

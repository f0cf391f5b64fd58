// Answers of a trained run on their way to a file of comma-separated values or the screen.
#ifndef TRADEWIND_CLI_ANSWERS_H
#define TRADEWIND_CLI_ANSWERS_H

#include "base/json.h"
#include "task/answers.h"

#include <stdio.h>

// Writes the answers. The file appears whole or not at all.
bool answers_write_csv(const answers *a, const char *path, err *e);

// Writes a cell: a text behind `begin`, quoted where it must be.
void answers_print_name(const char *begin, const char *name, FILE *f);

// Complaints about the newest bars of the coarser streams of a series, as texts; -1: of all. NULL where nothing is,
// or the answers are not for the newest bars.
json_t *answers_late(const answers *a, int64_t series);

// Prints the newest bars and what the run says of each: a line a bar, or an object a line.
void answers_print(const answers *a, bool json);

#endif

// Several models of one train command: their descriptions among its words, and their table as text.
#ifndef TRADEWIND_CLI_MODELS_H
#define TRADEWIND_CLI_MODELS_H

#include "base/json.h"
#include "cli/cli.h"

#include <stdio.h>

// Lists the descriptions: the first word, and others that are no assignment and name a file or end in .yaml or .yml.
// `rest` gets the options with the first of them and the words that are none. Returns how many there are.
int models_named(const cli_options *o, const char *file[WORDS_MOST], cli_options *rest);

// The command that goes on with all of them, which the caller frees.
char *models_resume(const cli_options *o);

// The table of task/models.h.
void models_print(json_t *table, FILE *out);

#endif

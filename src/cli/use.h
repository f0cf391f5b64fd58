// A trained run or ensemble as the words and options of evaluate and predict ask for it.
#ifndef TRADEWIND_CLI_USE_H
#define TRADEWIND_CLI_USE_H

#include "base/json.h"
#include "cli/cli.h"
#include "task/agent.h"
#include "task/trained.h"

#include <stdio.h>

// The first word is the run, the others are overrides of its description; --data, --part and --test choose the samples.
bool use_open(trained *t, const cli_options *o, err *e);

// The number of newest bars that --latest asks for, 0 without it. ERR_INPUT where it is none.
bool use_latest(const cli_options *o, int64_t *bars, err *e);

// The reason for a part that nobody asked for, to stand behind its samples; "" where there is none.
const char *use_part_note(const trained *t);

// Overrides that have no effect, a line each, and with -v a set that was too large to be checked; on stderr beside
// JSON. `unread` are the beginnings of keys that the command does not read, ended by NULL.
void use_tell(const trained *t, const cli_options *o, const char *command, const char *const *unread);

// Overrides that have no effect on a trained agent.
void use_tell_agent(const agent_task *t, const cli_options *o);

// Lines about data that may not be meant for the weights, and where samples lie in the time that the model was trained
// on; the same in an object, the latter as their number.
void use_warn(const data_notes *n, int64_t samples, FILE *out);
void use_add_json(const data_notes *n, json_t *to);

#endif

// An agent's task and run on the terminal, for train and plan.
#ifndef TRADEWIND_CLI_AGENT_SHOW_H
#define TRADEWIND_CLI_AGENT_SHOW_H

#include "base/json.h"
#include "base/term.h"
#include "cli/cli.h"
#include "task/agent.h"

// Device, environment, model and memory of an agent; `bars`: the report of its bar files, or NULL.
void agent_show(const agent_task *t, const char *bars, FILE *out);

// Memory by purpose, as an object.
json_t *agent_show_memory(const agent_memory *m);

// Shows an event of an agent's run, with the report of its bar files (or NULL) where it begins; false asks the run to
// stop.
bool agent_show_event(const cli_options *o, const char *bars, progress *bar, const task_event *e);

#endif

// Commands whose description or run is of an agent.
#ifndef TRADEWIND_CLI_AGENT_COMMANDS_H
#define TRADEWIND_CLI_AGENT_COMMANDS_H

#include "cli/cli.h"
#include "task/trained.h"

// plan: what would run and the memory that it takes; `*bars`: the report of bar files that the listener of `ask` has
// made while they were opened, or NULL.
bool agent_plan_command(const cli_options *o, const task_options *ask, char *const *bars, err *e);

// predict: actions bar by bar, into `path` or, of the newest bars, on the screen.
bool agent_predict_command(const cli_options *o, const char *path, err *e);

// evaluate: greedy episodes of a trained agent.
bool agent_evaluate_command(const cli_options *o, err *e);

#endif

// From words and options to the structs that a task takes.
#ifndef TRADEWIND_CLI_ASK_H
#define TRADEWIND_CLI_ASK_H

#include "cli/cli.h"
#include "task/open.h"

// The devices that --device names, with --threads and --isa.
bool ask_devices(const cli_options *o, task_devices *d, err *e);

// A queue on the first of them that can be used. Where the CPU stands in for a card, `why` says the reason; otherwise
// its text is empty.
bool ask_queue(const cli_options *o, const device **d, queue **q, err *why, err *e);

// A task as the words and options of a command ask for it: the first word is the description, the others are overrides.
bool ask_task(const cli_options *o, task_options *to, err *e);

#endif

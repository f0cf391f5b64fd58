// Shared by the commands: their table, their options, and how they end.
//
// Exit status: 0 done, 1 the run failed, 2 the user's input is wrong. An error is one line on stderr.
#ifndef TRADEWIND_CLI_CLI_H
#define TRADEWIND_CLI_CLI_H

#include "base/err.h"

#include <stdint.h>

enum { WORDS_MOST = 64, OWN_MOST = 64 };

// An option of one command alone, as given.
typedef struct {
    const char *name, *value; // value: NULL for a flag
    int before;               // words that were given before it
} cli_own;

typedef struct {
    bool json, quiet, verbose, help, no_peer;
    int threads;           // 0: one per processor
    const char *device;    // "auto", "cpu"
    const char *isa;       // NULL: the best there is
    const char *peer;      // bench: the PyTorch script
    const char *precision; // bench: NULL for all
    const char *seed;      // NULL: as the description says
    int64_t batch, steps;
    double started; // clock_seconds() when the program began
    int words;      // what is not an option
    const char *word[WORDS_MOST];
    int owns; // what the command's own `values` and `flags` were given, in their order
    cli_own own[OWN_MOST];
} cli_options;

typedef struct {
    const char *name;
    const char *arguments; // "CONFIG [key=value...]"
    const char *summary;   // one line
    const char *details;   // further help
    void (*more)(void);    // prints what else help should say, or NULL
    const char *options;   // that it takes beside --device, --threads, --isa, --json, -v, -q: "--seed --batch"
    int words;             // arguments that it takes at most
    bool (*run)(const cli_options *o, err *e);
    const char *values, *flags; // options that no other command has, with a value and without: "-o --tz"; or NULL
} cli_command;

#define COMMAND(name) extern const cli_command cli_##name;
#include "cli/commands.def"
#undef COMMAND

// The value that an option of the command's own was last given, a flag's being ""; NULL where it was not given.
const char *cli_given(const cli_options *o, const char *name);

// Set once Ctrl-C or SIGTERM has come; the first asks the run to stop, the second ends the program.
bool cli_interrupted(void);
void cli_watch_signals(void);

#endif

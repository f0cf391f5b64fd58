// The command that goes on with a run, as people paste it into a shell.
#ifndef TRADEWIND_RUN_COMMAND_H
#define TRADEWIND_RUN_COMMAND_H

// "tradewind train DIR/config.yaml --resume", with quotes where a shell needs them; the caller frees it.
char *command_resume(const char *dir);

#endif

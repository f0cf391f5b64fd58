// Commands as people paste them into a shell, with quotes where a shell needs them. The caller frees the texts.
#ifndef TRADEWIND_RUN_COMMAND_H
#define TRADEWIND_RUN_COMMAND_H

// "tradewind NAME PATH OPTIONS"; options may be empty and are taken as they are.
char *command_line(const char *name, const char *path, const char *options);

// The same with several words behind the name.
char *command_words(const char *name, const char *const *word, int words, const char *options);

// The command that goes on with a run: "tradewind train DIR/config.yaml --resume".
char *command_resume(const char *dir);

#endif

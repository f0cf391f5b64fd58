// The program run from a test: started in the test's own directory, its output left in the files out and err.
#ifndef TRADEWIND_TEST_CLI_PROGRAM_H
#define TRADEWIND_TEST_CLI_PROGRAM_H

#include "base/json.h"

#include <stdbool.h>
#include <sys/types.h>

// Which program to run from now on.
void program_use(const char *path);

// Copies it here, with a plug-in beside it or none (NULL), and runs the copy from now on.
void program_copy(const char *path, const char *plugin);

// Starts it with arguments that end with NULL; stdout goes to the file `out`, stderr to err.
pid_t program_start(const char *out, const char *const *arguments);

// Waits for it and gives its exit status; a signal that ended it fails the test.
int program_finish(pid_t child);

// The exit status; stdout and stderr are left in the files out and err.
#define RUN(...) program_finish(program_start("out", (const char *const[]){__VA_ARGS__, NULL}))

// A file's text, which the caller frees.
char *slurp(const char *path);

// True if a file is there and holds a text.
bool file_holds(const char *path, const char *text);

// Fail the test unless the file matches a regular expression, or is empty.
void matches(const char *path, const char *pattern);
void is_empty(const char *path);

// Fails the test unless two files are the same.
void same_bytes(const char *a, const char *b);

// Waits until a file holds a text; after two minutes it fails the test.
void wait_for(const char *path, const char *text);

void put_text(const char *path, const char *text);

// run.yaml: two epochs of a small LSTM on the synthetic market, in the directory `made`.
void put_small_run(void);

// The last line of the file out, parsed, which the caller gives back; and a number of it, which must be there.
json_t *last_line(void);
double number(const char *key);

// Fails the test unless the program ended with status 2, one line on stderr that matches, and nothing on stdout.
void complains(int status, const char *pattern);

#endif

// Files and directories of a test, put in place, removed and compared many thousand times: without a shell, which would
// take longer than the program does.
#ifndef TRADEWIND_TEST_FAULT_TREES_H
#define TRADEWIND_TEST_FAULT_TREES_H

#include <stdbool.h>

// Removes all that patterns of the shell name, with all that is inside; the patterns are apart by spaces.
void trees_remove(const char *patterns);

// Copies a file, or a directory with all that is inside; there must be nothing at `to`.
void trees_copy(const char *from, const char *to);

// True where both are files, or directories, that hold the same names and bytes; `except` is a name that is left out,
// or NULL.
bool trees_equal(const char *a, const char *b, const char *except);

#endif

// Files and directories of a test, put in place, removed and compared many thousand times: without a shell, which would
// take longer than the program does.
#ifndef TRADEWIND_TEST_FAULT_TREES_H
#define TRADEWIND_TEST_FAULT_TREES_H

// Removes all that patterns of the shell name, with all that is inside; the patterns are apart by spaces.
void trees_remove(const char *patterns);

// Copies a file, or a directory with all that is inside; there must be nothing at `to`.
void trees_copy(const char *from, const char *to);

// Fails the test unless both directories hold the same names and bytes; `except` is a name that is left out, or NULL.
void trees_same(const char *a, const char *b, const char *except);

#endif

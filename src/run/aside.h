// Earlier runs: the directory DIR of a run that makes place for another becomes DIR.1, DIR.2 and so on, by one rename.
//
// Nothing is removed or copied. A rename happens or does not, so a kill loses nothing: the run lies under its old name
// or under the new one, whole.
#ifndef TRADEWIND_RUN_ASIDE_H
#define TRADEWIND_RUN_ASIDE_H

#include "base/err.h"

// Renames a directory to the number behind all that are there, makes an empty one in its place, and gives the new name,
// which the caller frees. A symbolic link stays: the directory that it names is renamed. ERR_INPUT for the working
// directory, one above it, and one that cannot be renamed. NULL on failure.
char *aside_set(const char *dir, err *e);

// The newest DIR.N, which the caller frees; NULL where there is none.
char *aside_newest(const char *dir);

#endif

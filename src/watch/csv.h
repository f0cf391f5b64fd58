// A table of a run as CSV, whatever table it is: texts quoted where they must be, what a row does not have empty.
#ifndef TRADEWIND_WATCH_CSV_H
#define TRADEWIND_WATCH_CSV_H

#include "base/err.h"

#include <stdio.h>

// Writes a table of a run's run.db with the names of its columns. All rows are of one moment; where that cannot be had,
// `out` is cut back to where it stood, so it must be a file that can be. ERR_INPUT, naming the tables that there are,
// where there is none of that name.
bool csv_write(const char *dir, const char *table, FILE *out, err *e);

#endif

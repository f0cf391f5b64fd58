// Formats of the files that the program writes. Each file carries the number of its format, which grows where an older
// program could not read the file any more. Older formats are read, newer ones are refused by name.
#ifndef TRADEWIND_BASE_FORMAT_H
#define TRADEWIND_BASE_FORMAT_H

#include "base/err.h"

#include <stdint.h>

// False, and ERR_INPUT, for a file of a newer format than the newest one that this program reads.
bool format_known(const char *path, int64_t format, int64_t newest, err *e);

// Number of a format that stands in a file as text; 0 where the text is none.
int64_t format_number(const char *text);

#endif

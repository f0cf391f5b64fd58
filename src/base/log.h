// A plain text log that `tail -f` reads well: one line an event, local time first, on the disk's side when the call
// returns. Losing the log never stops the work that it tells about.
#ifndef TRADEWIND_BASE_LOG_H
#define TRADEWIND_BASE_LOG_H

#include "base/err.h"

typedef struct log_file log_file;

// Opens `path` for appending, making it when missing. NULL on failure (ERR_INPUT).
log_file *log_open(const char *path, err *e);

// Appends "YYYY-MM-DD HH:MM:SS text". Control characters become spaces; a line of more than 4 KiB is cut and ends in
// "...". Any thread may call it; lines do not mix. A NULL log does nothing.
void log_line(log_file *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// True if any line so far was lost, for example to a full disk. A NULL log has not failed.
bool log_failed(const log_file *l);

void log_close(log_file *l);

#endif

// The report of a directory, for every command that leaves one.
#ifndef TRADEWIND_CLI_REPORT_H
#define TRADEWIND_CLI_REPORT_H

#include "base/err.h"
#include "base/json.h"

// Writes the page of a run or a walk, `page` or else report.html in its directory, and the figures. Nothing but an
// earlier report is replaced. The summary (watch/report.h), which the caller gives back; NULL on failure.
json_t *report_write(const char *dir, const char *page, err *e);

#endif

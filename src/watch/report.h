// A report: one self-contained page of what a run's or a walk's directory holds, and its figures as files.
//
// The page is PAGE.html, figures are PAGE/NAME.svg. Each file is replaced whole or not at all; figures of an earlier
// report that this one does not have are removed.
#ifndef TRADEWIND_WATCH_REPORT_H
#define TRADEWIND_WATCH_REPORT_H

#include "base/err.h"
#include "base/json.h"

typedef struct {
    const char *dir;
    const char *page; // ends in ".html"; NULL: report.html in the directory

    // True where a file may be written or replaced; asked for each before any is written.
    bool (*may_replace)(const char *path, err *e);
} report_options;

// Writes the page and the figures. The summary (watch/summary.h) with "report", the page's path, and "directory", that
// of the figures; the caller gives it back. NULL on failure: ERR_INPUT where the directory is neither a run's nor a
// walk's.
json_t *report_make(const report_options *o, err *e);

#endif

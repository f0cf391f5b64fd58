// A run as a JSON document: a line of the list, or all but its curves.
#ifndef TRADEWIND_WATCH_WEB_RUN_DOC_H
#define TRADEWIND_WATCH_WEB_RUN_DOC_H

#include "base/json.h"
#include "watch/web/view.h"

#include <stdint.h>

typedef struct {
    const char *id, *name, *dir;
    const char *parent; // the id of the walk or ensemble that it is of; or NULL
    bool parts;         // it is a walk or an ensemble
    const view *view;
} run_doc;

json_t *run_doc_short(const run_doc *d);
json_t *run_doc_whole(const run_doc *d);

// A number that changes where a document of a directory (run/results.h), or its report, is made, replaced or removed.
uint64_t run_doc_files(const char *dir);

#endif

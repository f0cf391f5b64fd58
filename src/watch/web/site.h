// The runs below a directory, as documents that the page reads. Any thread may ask; one is answered at a time.
//
// Runs are found by looking through directories as `tradewind runs` does, and are named by ids made of their paths, so
// that an address of the page stays good when the server starts anew. Curves are kept of runs that are looked at, up to
// a bound; of the others a summary.
#ifndef TRADEWIND_WATCH_WEB_SITE_H
#define TRADEWIND_WATCH_WEB_SITE_H

#include "base/json.h"
#include "watch/web/request.h"

typedef struct site site;

// ERR_INPUT where the directory cannot be read.
site *site_new(const char *dir, const char *version, err *e);
void site_free(site *s);

// Looks for news, and calls `tell` with every run that has changed ("run") and when the list has ("runs").
void site_refresh(site *s, void (*tell)(void *arg, const char *event, const char *data), void *arg);

// All runs; one of them, NULL where there is none of that id.
json_t *site_runs(site *s);
json_t *site_run(site *s, const char *id);

// Windows of curves of a run, as JSON text, which the caller frees; NULL where there is no such run.
char *site_series(site *s, const request *r, size_t *bytes);

// The directory of a run, which the caller frees; NULL where there is none of that id.
char *site_dir(site *s, const char *id);

// Everything as Prometheus reads it; the caller frees it.
char *site_metrics(site *s, size_t *bytes);

#endif

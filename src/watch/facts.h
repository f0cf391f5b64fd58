// Facts of a run or a walk, read once from its directory: what a report draws and says. Nothing here computes with
// models, and nothing writes.
//
// A document or a database that is there and cannot be read is a trouble to be told, and otherwise as if it were not
// there: a report is made of the rest.
#ifndef TRADEWIND_WATCH_FACTS_H
#define TRADEWIND_WATCH_FACTS_H

#include "run/db.h"
#include "run/results.h"
#include "watch/trace.h"

enum { FACTS_CURVES_MOST = 64, FACTS_TROUBLES_MOST = RESULTS_KINDS + 3 };

// A metric of a part, epoch by epoch.
typedef struct {
    char part[16], name[32];
    trace *values;
    double best; // of the best epoch; NaN: none
} curve;

typedef struct {
    const char *dir;
    bool is_run;  // it has a config.yaml, and neither a walk.json nor folds; otherwise it is a walk's directory
    bool has_sum; // run.db could be read
    db_summary sum;
    const char *status; // of run_status; of a walk "", or "incomplete" before it has a walk.json; "" also where run.db
                        // cannot be read
    int64_t folds, folds_done; // of an incomplete walk: all, 0 where run.db does not say, and those that are trained
    char model[32], device[128], data[128];
    char agent[32];      // environment of an agent; empty: the run is of a model
    char *config, *plan; // texts of config.yaml and plan.yaml, or NULL
    int curves;
    curve curve[FACTS_CURVES_MOST];
    const char *metric; // that is drawn beside the loss: the description's, or the usual one; NULL: none
    trace *steps;       // the loss, step by step
    trace *memory, *others, *utilisation; // of the monitor, over seconds since its first sample; bytes, percent
    double memory_total;                  // NaN: not known
    double monitor_start;
    json_t *doc[RESULTS_KINDS];  // NULL: none
    json_t *part;                // of the evaluation that is shown first: test, validation, or another; or NULL
    const char *part_name;       //
    json_t *confusion, *classes; // of that part, or of the best epoch on validation, or of all tests of a walk; classes
                                 // may be NULL
    json_t *best_confusion;      // of the best epoch, the facts' own
    int troubles;
    err trouble[FACTS_TROUBLES_MOST];
} facts;

// ERR_INPUT where the directory is neither a run's nor a walk's. To be given back by facts_close, not on failure.
bool facts_open(facts *f, const char *dir, err *e);
void facts_close(facts *f);

// A curve, or NULL.
const trace *facts_curve(const facts *f, const char *part, const char *name);

// A part of the evaluation, or NULL.
json_t *facts_part(const facts *f, const char *name);

// The value of a curve at the best epoch; NaN where there is none.
double facts_best(const facts *f, const char *part, const char *name);

#endif

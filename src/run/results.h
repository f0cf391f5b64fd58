// Results of a run: JSON documents in its directory that commands leave for whoever reads the run later.
//
//   evaluation.json   by evaluate: scores, confusion, calibration and column importance of each part
//   backtest.json     by backtest: assumptions, statistics, equity, days, months, trades, price
//   signal.json       by backtest: the rule that makes positions of predictions, as it was fitted
//   walk.json         by walk, in the walk's directory: its folds
//   memory.json       by train: where every block of the memory plan lies, and when it is alive
//
// A document is an object with "version", a number that grows where an older program could not read it any more: newer
// ones are refused by name; and with "sum", over all else, which readers compare and do not see. It is replaced whole
// or not at all, and is on the disk then. Numbers are finite, or null where there is none. What is read is bounded
// (bytes, elements of a list) and of the kinds that results.c lists by path, so that a reader may ask for a number and
// get one; keys that it does not list are skipped, any may be missing.
#ifndef TRADEWIND_RUN_RESULTS_H
#define TRADEWIND_RUN_RESULTS_H

#include "base/err.h"
#include "base/json.h"

typedef enum {
    RESULTS_EVALUATION,
    RESULTS_BACKTEST,
    RESULTS_SIGNAL,
    RESULTS_WALK,
    RESULTS_MEMORY,
    RESULTS_KINDS
} results_kind;

// Points that a writer leaves at most in a list that is drawn.
enum { RESULTS_POINTS_MOST = 2000 };

// Stands near the head of the pages and figures that report makes of a run: what another report may replace.
#define RESULTS_REPORT_MARK "<!-- tradewind report -->"

// The file's name in the run's directory.
const char *results_name(results_kind k);

// Reads a document. True with NULL in `*doc` where there is none; ERR_INPUT, naming the place, where it is damaged or
// of a newer version. The caller gives the reference back.
bool results_read(const char *dir, results_kind k, json_t **doc, err *e);

// Replaces a document, with the version added. Takes over the reference, also on failure.
bool results_write(const char *dir, results_kind k, json_t *doc, err *e);

// Sets doc[section][key] to `value` and keeps the rest of what is there: one part of an evaluation. Callers at the same
// time wait for each other. Takes over the reference. A document that is there and cannot be read stays, and is told.
bool results_set(const char *dir, results_kind k, const char *section, const char *key, json_t *value, err *e);

// A value by keys with dots between them: "equity.time"; NULL where there is none, or a null.
json_t *results_get(json_t *doc, const char *path);

// A number, or NaN.
double results_number(const json_t *value);

#endif

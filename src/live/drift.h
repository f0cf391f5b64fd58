// Drift: how the newest answers of a session fared, beside what the run did on validation.
//
// It reads a journal, of a session that runs or not, and changes nothing. An answer is scored once the bars behind it
// tell its label, by the same rules as in training. The scores of validation are those that `evaluate` keeps in the
// run's directory. Labels that overlap say little anew: an answer counts as one of 1 / reach of them where its label
// reaches that many bars ahead, and a difference is told in standard errors.
#ifndef TRADEWIND_LIVE_DRIFT_H
#define TRADEWIND_LIVE_DRIFT_H

#include "data/build.h"
#include "live/journal.h"
#include "run/results.h"

enum { DRIFT_CLASSES_MOST = 8 };

// Scores of answers; NaN where there is none.
typedef struct {
    int64_t samples;
    double log_loss, accuracy, mcc;
    double calibration; // mean over classes and samples of |probability - share that came true|, in ten bins
    double share[DRIFT_CLASSES_MOST]; // of the answers that are of each class
    double mae;                       // of forecasts, in their own unit
} drift_scores;

typedef struct {
    char symbol[BARS_SYMBOL_ROOM];
    int classes;           // 0: forecasts
    int64_t answers;       // in the window
    int64_t opened;        // the first of them
    int64_t from, to;      // closes of the first and the last of them
    drift_scores scores;   // of those whose label is known
    double deviation;      // of one answer's log loss, or absolute error
    double apart;          // standard errors by which it is worse than on validation; NaN: not known
    int64_t held, outside; // decisions that a limit held back; bars whose inputs lay outside what training saw
    int64_t decisions;     // in the window's time
} drift;

// True where the loss is `apart` enough to be no chance.
bool drift_is_worse(const drift *d);

// The scores that a run has on validation; NaN for what its directory does not say. False where its evaluation is
// damaged.
bool drift_reference(const char *run, drift_scores *s, err *e);

// The newest `last` answers for an instrument. The label's meaning comes from the journal. `reference` may be NULL.
bool drift_make(journal *j, const char *symbol, int64_t last, const drift_scores *reference, drift *d, err *e);

// The directory of the run that the session is of, which the caller frees; NULL where the journal does not say.
bool drift_run(journal *j, char **run, err *e);

#endif

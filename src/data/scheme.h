// Schemes of folds: which samples are trained on, validated and tested in each fold of a walk.
//
// Walk-forward (rolling, expanding): a fold is training, validation and test, one behind the other in time; the next
// fold lies one step later. Rolling training has one length, expanding training begins with the data. The last test
// may be shorter: it ends with the data. Spans of months begin with the month of the first sample, spans of hours, days
// and weeks with its day (UTC), so that tests are those of the calendar. Training whose length is a date ends there in
// the first fold.
//
// Combinatorial purged cross-validation (López de Prado, "Advances in Financial Machine Learning", 2018): moments are
// cut into groups of equal number, every choice of so many groups is tested once, and all others are trained on. Each
// group is tested in as many folds as there are paths; a path takes each group from one fold and is one backtest over
// all of the data. Validation is the end of the last group that is not tested.
//
// Purging and the embargo take samples from training and validation, never from the test. `purge` is
// PURGE_LABELS: samples of an earlier part whose labels reach a later one, and training behind a test that the test's
// labels reach or whose windows see the test or its labels; PURGE_WINDOWS: also samples of an earlier part that windows
// of a later one see; or a number of moments on each side. Walk-forward purges as if validation and test began one
// embargo earlier; behind a test of the combinatorial scheme the embargo follows what is purged.
//
// Samples of several instruments interleave; all change parts at the same moment. Nothing here depends on anything but
// the samples' times, rows and labels' ends.
#ifndef TRADEWIND_DATA_SCHEME_H
#define TRADEWIND_DATA_SCHEME_H

#include "data/extent.h"
#include "data/split.h"

typedef enum { SCHEME_ROLLING, SCHEME_EXPANDING, SCHEME_CPCV } scheme_kind;

// Folds that are made, and number of the last one: those that are not kept are only counted.
enum { SCHEME_FOLDS_MOST = 10000, SCHEME_NUMBER_MOST = 1000000, SCHEME_GROUPS_MOST = 32 };

typedef struct {
    scheme_kind kind;
    extent train, test; // walk-forward; above 0, and only `train` may be a date
    extent step;        // walk-forward; 0: as long as the test
    extent validation;  // may be 0: none
    int64_t purge;      // PURGE_LABELS, PURGE_WINDOWS, or moments
    extent embargo;     // may be 0
    int64_t folds;      // walk-forward: the newest so many are kept; 0: all
    int64_t only;       // walk-forward: the fold of this number alone, from 1, also one that cannot be trained; 0: not
    int groups, tests;  // combinatorial: 2 or more groups, of which 1 to groups - 1 are tested
    const int64_t *window; // bars of each stream's window
} scheme;

typedef struct {
    int64_t number;                // 0 is the first of the scheme, kept or not
    split parts;                   // the test has all samples of its span
    int group[SCHEME_GROUPS_MOST]; // combinatorial: groups that are tested, rising, and the path that takes each
    int path[SCHEME_GROUPS_MOST];
    char why[160]; // the reason why it cannot be trained: a part is empty; "": it can
} scheme_fold;

typedef struct {
    scheme_fold *fold; // [count] in order of time, or of choices: 01, 02, 12 and so on
    int64_t count, all;
    int groups, tests, paths; // 0 for walk-forward; groups, groups that a fold tests, paths
    span group[SCHEME_GROUPS_MOST];
} scheme_folds;

// ERR_INPUT where the data are too short for one fold, have no times though spans do, or hold out a validation part of
// their own; where folds are too many; and where no fold can be trained. On failure there is nothing to give back.
bool scheme_make(const dataset *d, const scheme *s, scheme_folds *to, err *e);
void scheme_done(scheme_folds *f);

// The fold that tests a group in a path of the combinatorial scheme; all count from 0.
int64_t scheme_of_path(const scheme_folds *f, int path, int group);

#endif

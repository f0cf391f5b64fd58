// Shared by the files of walk_check, and private to them.
#ifndef TRADEWIND_TASK_WALK_CHECK_WORK_H
#define TRADEWIND_TASK_WALK_CHECK_WORK_H

#include "data/sources.h"
#include "rl/agent.h"
#include "task/agent_market.h"
#include "task/walk_check.h"

// Bars that everything is made of, and how.
typedef struct {
    sources files;        // of a description's files; none for a set
    build_series *series; // of a set
    bar **bars;           // [series * frames] of a set
    build_source from;
    build_options o;
    int64_t *since; // [series] time of the first sample
} history;

// Behind a moment: nothing, or bars with other prices, volumes and spreads at the same times.
typedef enum { FUTURE_CUT, FUTURE_UP, FUTURE_DOWN } future;

// Takes the bars of the files that a description names, or of a set that it was made of. ERR_INPUT where a set keeps no
// bars, with the reason.
bool history_read(history *h, const config *c, const settings *s, err *e);
bool history_of_set(history *h, const dataset *set, err *e);
void history_done(history *h);

// Learns from the dataset of all bars when each instrument's samples begin; before the first history_build.
void history_begin(history *h, const dataset *whole);

// The dataset of all bars, and the one with another future behind t. Instruments without a sample by t are left out
// where the future is cut.
dataset *history_whole(const history *h, err *e);
dataset *history_build(const history *h, int64_t t, future f, err *e);

// Results

void check_count(check_result *r, int64_t compared);
void check_fail(check_result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Samples of a dataset in order of (time, symbol), symbols as the whole dataset counts them.
typedef struct {
    int64_t time, series, sample;
} roll_entry;

typedef struct {
    const dataset *d;
    roll_entry *at; // [count]
    int64_t count;
    int64_t *series; // [series of the whole dataset] its number here; -1: not here
} roll;

bool roll_make(roll *r, const dataset *d, const dataset *whole, err *e);
void roll_done(roll *r);

// Compares what was known at t in the whole dataset and in one with another future; `reach`: bars that a label needs.
bool same_past(const roll *whole, const roll *other, int64_t t, future f, int64_t reach, check_report *r, err *e);

// Observations of a description's agent on the whole dataset. Features are as they are: scales have a rule of their
// own.
typedef struct {
    const dataset *whole;
    agent_settings settings;
    account_terms terms;
    agent_market market;
} sight;

// To be given back by sight_done, also on failure.
bool sight_make(sight *s, const config *c, const dataset *whole, err *e);
void sight_done(sight *s);

// Compares what an agent sees at every bar up to t, trading on the whole dataset and on one with another future.
bool sight_same(const sight *s, const roll *other, int64_t t, future f, check_report *r, err *e);

// The size of a point, where costs are in points and it is found in the prices' digits, as a value of account.point; ""
// where it need not be given. An instrument's point is no secret of its future. ERR_INPUT for several instruments.
enum { POINT_ROOM = 32 };
bool sight_fix_point(const config *c, const dataset *d, char text[POINT_ROOM], err *e);

// Labels that were not known at t must differ between a future far above and one far below.
void labels_follow(const roll *up, const roll *down, int64_t t, check_report *r);

// Labels and windows of every fold, by a definition that looks at every sample; `h` is NULL where there are no bars.
bool parts_apart(
    const dataset *d, const history *h, const int64_t *window, const scheme_folds *folds, check_result *r, err *e);

// Moments behind which nothing matters to a fold's training, and to its weights; false where it trains or validates on
// what lies behind the test.
bool fold_trained_by(const dataset *d, const split *s, int64_t *t);
bool fold_chosen_by(const dataset *d, const split *s, int64_t *t);

// Data with everything altered that no training sample, and with `validation` none of that part either, can see. The
// whole dataset must outlive it. NULL where memory is short.
dataset *unseen_altered(dataset *whole, const split *s, bool validation, const int64_t *window, future f, err *e);

// Scales of a fold, and its weights with `train`, on the whole dataset and on others of the history, or altered ones
// where there is none (NULL).
bool fold_same(
    const task_options *o, const history *h, dataset *whole, const scheme_fold *f, bool train, check_report *r, err *e);

#endif

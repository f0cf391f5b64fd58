// Data of an agent that trades: the arrays of the environment `market` (env/market.h) from a dataset of bars, and the
// stretches in which a part of a split is traded.
//
// A row is a bar that has a sample. Its features are the bar's own, those of the first stream, observed for every lag;
// behind them, observed once, those of the newest closed bars of the other streams, as the sample has them, and the
// sample's vector. The environment puts streams on the scale of a scaler, which was fitted on the training part: so the
// folds of a walk read one set of arrays, each on a scale of its own.
//
// All parts of a split share the rows. A stretch is the bars from the first to the last sample that an instrument has
// in a span of the part: nothing is traded outside it. Observations of its first bars look back into the bars before,
// as windows of samples do.
#ifndef TRADEWIND_TASK_AGENT_MARKET_H
#define TRADEWIND_TASK_AGENT_MARKET_H

#include "data/scaler.h"
#include "env/account_terms.h"
#include "env/market.h"
#include "rl/agent.h"

typedef struct agent_market {
    int64_t rows, instruments;
    int32_t lags, lagged, once;
    bool day_close;
    account_bar *bar;     // [rows]
    float *feature;       // [rows, lagged + once] as the dataset has them
    float *scale;         // [2, lagged + once] (MARKET_SCALE)
    int32_t *calendar;    // [rows, MARKET_COLUMNS]
    account_rules *rules; // [instruments]
    int64_t *start;       // [instruments + 1] where the rows of each begin
    int64_t *offset;      // [instruments] of its rows: row of the first stream less row here
    bool borrowed;        // all arrays but the scale are another's
} agent_market;

// Makes the arrays, to be observed with so many lags, 1 or more. `s` has one scale for all instruments, or the data are
// on their own scales already (scaler_apply); NULL: features are as they are. ERR_INPUT where the data keep no bars,
// an observation would be too wide, a feature is not finite, or the account's terms do not fit the prices. On failure
// `m` is empty.
bool agent_market_make(
    agent_market *m, const dataset *d, int32_t lags, const scaler *s, const account_terms *t, err *e);

// The same arrays on another scale. `from` was made of these data and outlives `m`. ERR_INPUT where a feature is not
// finite on that scale. On failure `m` is empty.
bool agent_market_like(agent_market *m, const agent_market *from, const dataset *d, const scaler *s, err *e);

// Safe to call twice.
void agent_market_done(agent_market *m);

// Parts of making it, for those who have bars one by one (task/agent_window.h).

// An empty market of the widths that the data have; ERR_INPUT where an observation would be too wide.
bool agent_market_begin(agent_market *m, const dataset *d, int32_t lags, const account_terms *t, err *e);

// Features of a sample, [lagged + once], as the dataset has them.
void agent_market_features(const dataset *d, int64_t sample, float *to);

// Makes the scale of the features.
bool agent_market_scale(agent_market *m, const dataset *d, const scaler *s, err *e);

// MARKET_CLOCK of a bar that closes at `end`.
int32_t agent_market_clock(int64_t end);

// Stretches of a part, by time and then by instrument.
typedef struct {
    char name[48]; // "train stretches"
    int64_t count;
    market_stretch *item; // [count]
    int64_t orders;       // that can be decided in all of them
    int64_t left_out;     // stretches that are too short
    int64_t left_bars;    // their bars
} agent_stretches;

// Stretches that a part, of the dataset that `m` was made of, has behind the first lags, as far as an episode of
// `limit` steps fits into them, or of 1 step where the limit is 0: so an episode that begins at random is never
// truncated before the limit. `name` is the part's. ERR_INPUT where no stretch is left. On failure `p` is empty.
bool agent_market_part(agent_stretches *p, const agent_market *m, const dataset *d, const split_part *part,
    const char *name, int64_t limit, err *e);

// Stretches up to the newest bar of every instrument, labelled or not, each from the first bar that closed after
// `after`; from the instrument's first one behind the lags where fewer than two bars are left behind that. ERR_INPUT as
// above.
bool agent_market_newest(
    agent_stretches *p, const agent_market *m, const dataset *d, int64_t after, const char *name, err *e);

// The bar of the first stream's table that a row is; and the instrument of a row.
int64_t agent_market_bar(const agent_market *m, const dataset *d, int64_t row);
int64_t agent_market_series(const agent_market *m, int64_t row);

// Safe to call twice.
void agent_stretches_done(agent_stretches *p);

// Describes them to an agent: the settings of its environment that the arrays decide, the others stay as they are, and
// the arrays, which must outlive the agent. Worlds of two parts differ in their stretches alone, by name too; those of
// two folds in scale and stretches.
void agent_market_world(const agent_market *m, const agent_stretches *p, agent_world *w);

#endif

// One instrument of a trained run's data as a backtest takes it: quotes, volatility, and scores of the run's answers by
// bar.
#ifndef TRADEWIND_TASK_MARKET_H
#define TRADEWIND_TASK_MARKET_H

#include "backtest/follow.h"
#include "task/trained.h"

typedef struct {
    build_options label; // of the data
    int64_t series;      // of the data
    char symbol[64];     // "" where the data have one instrument without a name
    int64_t first;       // bar of the data's table that is bar 0 of its series
    int64_t bars;        // of the series
    quotes quotes;       // of its bars, or of the rows of a file
    int64_t *at;         // [bars] row of the quotes for each bar; -1: none. NULL: they are the same
    follow_series all;   // by row of the quotes
} market;

typedef struct {
    const char *symbol; // NULL: the only one
    const char *rows;   // a file whose rows, as they are, are the quotes; NULL: the data's own bars
} market_options;

// False, with ERR_INPUT, where data were not made of bars or did not keep them.
bool market_has_bars(const dataset *d, err *e);

// Finds the instrument of this name among the data, NULL for the only one: its series and symbol. ERR_INPUT where it is
// not known or not given.
bool market_choose(market *m, const dataset *d, const char *symbol, err *e);

// False with ERR_INPUT for a name that the data do not have, which lists those that they have; NULL: one has to be
// given.
bool market_refuse(const dataset *d, const char *symbol, err *e);

// Quotes of all bars of a series of the data, which have bars. On failure `q` is empty.
bool market_quote(quotes *q, const dataset *d, int64_t series, const account_terms *terms, err *e);

// Takes the bars of an instrument from opened data. `t` must outlive it. ERR_INPUT where the data were not made of
// bars or did not keep them, or where the symbol is not known or not given. On failure `m` is empty.
bool market_open(market *m, const trained *t, const market_options *o, const account_terms *terms, err *e);

// Safe to call twice.
void market_close(market *m);

// Measures the volatility of the data's bars over so many of them.
bool market_measure(market *m, const trained *t, int64_t bars, err *e);

// Asks the run for answers to a part of its samples, and puts the scores of the instrument's into their rows; scores of
// other rows stay. `from` and `to` are the rows of the first and of the last; ERR_INPUT where the part has none of
// them.
bool market_score(market *m, trained *t, const split_part *part, int64_t *from, int64_t *to, err *e);

// The score of one answer (backtest/decide.h), made at a bar that closed at `close`.
double market_answer(const trained *t, const build_options *label, const float *answer, double close);

// Bars in a mean year of rows from..to.
double market_bars_a_year(const market *m, int64_t from, int64_t to);

#endif

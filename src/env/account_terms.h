// An account as a description has it: the keys of the section `account`, and the rules that follow from them.
#ifndef TRADEWIND_ENV_ACCOUNT_TERMS_H
#define TRADEWIND_ENV_ACCOUNT_TERMS_H

#include "base/config.h"
#include "env/account.h"

typedef enum {
    ACCOUNT_PER_PRICE, // 0.0001: a share of the price, or of a fill's value
    ACCOUNT_PER_POINT, // 2pt
    ACCOUNT_IN_PRICE,  // 0.3abs: price units
    ACCOUNT_FROM_FILE, // file: the column of the bars, in points
    ACCOUNT_PER_LOT,   // 7/lot: money for each lot of a fill
    ACCOUNT_PER_UNIT,  // 0.005/unit
} account_measure;

typedef struct {
    double value;
    account_measure measure;
} account_rate;

typedef struct {
    account_rate spread, commission, slippage, swap_long, swap_short;
    double cash, leverage, margin_call, contract, lot_step;
    double point;       // price units; 0: by the digits of the prices
    double days_a_year; // 0: by the bars
    bool last_open;     // what is open at the end is closed at the last bar's open, not at its close
    bool day_close;     // positions are closed at the close of each day's last bar
    bool target_first, entry_stop, shorts;
} account_terms;

// Rows for a table of keys.
const config_key *account_keys(size_t *count);

// Fills `t` from a description that config_check has passed. ERR_INPUT where a text is no amount.
bool account_terms_read(const config *c, account_terms *t, err *e);

// True where the rules depend on the size of a point.
bool account_needs_point(const account_terms *t);

// The rules, for prices with this point, in 1e-8; the bars bring the spread where it is ACCOUNT_FROM_FILE. ERR_INPUT
// where an amount is beyond what an account can hold.
bool account_rules_make(account_rules *r, const account_terms *t, int64_t point, err *e);

// A number as a whole number of 1e-8, rounded; false where it is beyond ACCOUNT_MOST or not finite.
bool account_fixed(double v, int64_t *fixed);

// An amount of 1e-8 as a decimal number with at least `decimals` of them, further ones as far as they are not 0.
// Returns `buf`.
char *account_text(char *buf, size_t n, int64_t v, int decimals);

// A rate for people: "0.01 % of the price", "2 points", "7 a lot". Returns `buf`.
char *account_rate_text(char *buf, size_t n, const account_rate *rate, const char *of);

// The word of a reason for trade lists: "stop".
const char *account_reason_name(account_reason why);

#endif

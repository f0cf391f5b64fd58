// The section `signal:` of a description: how a prediction becomes a position (backtest/decide.h acts on it).
#ifndef TRADEWIND_TRAIN_SIGNAL_KEYS_H
#define TRADEWIND_TRAIN_SIGNAL_KEYS_H

#include "base/config.h"

// Prediction that ends a position before its time: one for the other side, one for no side, none.
typedef enum { SIGNAL_OPPOSITE, SIGNAL_NEUTRAL, SIGNAL_HORIZON } signal_exit;

// Unit of `size`: lots, volatility of a year, share of the equity.
typedef enum { SIGNAL_FIXED, SIGNAL_VOLATILITY, SIGNAL_EQUITY } signal_sizing;

enum { SIGNAL_AUTO = -1 };

typedef struct {
    double threshold; // SIGNAL_AUTO: fitted on validation
    int64_t hold;     // bars; 0: no limit; SIGNAL_AUTO: the label's horizon
    signal_exit exit;
    double stop, target; // 0: none; SIGNAL_AUTO: as the label has them
    signal_sizing sizing;
    double size;
} signal_settings;

// Rows for a table of keys; those of the section `report`.
const config_key *signal_keys(size_t *count);
const config_key *report_keys(size_t *count);

// Reads the section after config_check. ERR_INPUT names the key.
bool signal_read(const config *c, signal_settings *s, err *e);

// Settings that were tried on the data, as the user counts them; SIGNAL_AUTO: not said.
int64_t report_trials(const config *c);

// The words of the keys.
const char *signal_exit_name(signal_exit x);
const char *signal_sizing_name(signal_sizing s);

#endif

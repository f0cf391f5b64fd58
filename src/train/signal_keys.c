#include "train/signal_keys.h"

#include <string.h>

enum { FREE = KEY_FREE | KEY_UNTUNED };

static const config_key keys[] = {
    {"signal.threshold", CONFIG_REAL, "auto", 0, 1e9, "auto",
        "least probability of UP or DOWN, or least forecast return, that is acted on; auto: the best after costs on "
        "validation",
        FREE},
    {"signal.exit", CONFIG_CHOICE, "horizon", 0, 0, "opposite|neutral|horizon",
        "prediction that ends a position before signal.hold: opposite, neutral (or opposite), horizon: none", FREE},
    {"signal.hold", CONFIG_INT, "auto", 1, 1e9, "auto|none",
        "bars that a position is held at most, unless the prediction then asks for it again; auto: the label's horizon",
        FREE},
    {"signal.stop", CONFIG_REAL, "auto", ABOVE_0, 1e6, "auto|none",
        "distance of the stop from the close, in the label's unit, volatilities of a bar; auto: the barrier of the "
        "label, else none",
        FREE},
    {"signal.target", CONFIG_REAL, "auto", ABOVE_0, 1e6, "auto|none", "the same of the target", FREE},
    {"signal.sizing", CONFIG_CHOICE, "equity", 0, 0, "fixed|volatility|equity",
        "unit of signal.size: lots, volatility of the equity in a year, share of the equity", FREE},
    {"signal.size", CONFIG_REAL, "auto", ABOVE_0, 1e9, "auto",
        "size of a position; auto: 1 lot, a volatility of 0.1 a year, 0.95 of the equity", FREE},
};

static const config_key reports[] = {
    {"report.trials", CONFIG_INT, "auto", 1, 1e9, "auto",
        "settings that were tried on these data, for the deflated Sharpe; auto: counted among the runs beside this one",
        FREE},
};

static const char *const exits[] = {
    [SIGNAL_OPPOSITE] = "opposite", [SIGNAL_NEUTRAL] = "neutral", [SIGNAL_HORIZON] = "horizon"};
static const char *const sizings[] = {
    [SIGNAL_FIXED] = "fixed", [SIGNAL_VOLATILITY] = "volatility", [SIGNAL_EQUITY] = "equity"};
static const double usual_size[] = {[SIGNAL_FIXED] = 1, [SIGNAL_VOLATILITY] = 0.1, [SIGNAL_EQUITY] = 0.95};

const config_key *signal_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

const config_key *report_keys(size_t *count) {
    *count = sizeof reports / sizeof *reports;
    return reports;
}

const char *signal_exit_name(signal_exit x) {
    return exits[x];
}

const char *signal_sizing_name(signal_sizing s) {
    return sizings[s];
}

int64_t report_trials(const config *c) {
    return config_is(c, "report.trials", "auto") ? SIGNAL_AUTO : config_int(c, "report.trials");
}

static double distance_of(const config *c, const char *path) {
    if (config_is(c, path, "auto")) return SIGNAL_AUTO;
    return config_is(c, path, "none") ? 0 : config_real(c, path);
}

static int64_t hold_of(const config *c) {
    if (config_is(c, "signal.hold", "auto")) return SIGNAL_AUTO;
    return config_is(c, "signal.hold", "none") ? 0 : config_int(c, "signal.hold");
}

static int choice_of(const config *c, const char *path, const char *const *words) {
    int k = 0;
    while (strcmp(config_text(c, path), words[k]) != 0) k++;
    return k;
}

bool signal_read(const config *c, signal_settings *s, err *e) {
    *s = (signal_settings){
        .threshold = config_is(c, "signal.threshold", "auto") ? SIGNAL_AUTO : config_real(c, "signal.threshold"),
        .hold = hold_of(c),
        .exit = (signal_exit)choice_of(c, "signal.exit", exits),
        .stop = distance_of(c, "signal.stop"),
        .target = distance_of(c, "signal.target"),
        .sizing = (signal_sizing)choice_of(c, "signal.sizing", sizings)};
    s->size = config_is(c, "signal.size", "auto") ? usual_size[s->sizing] : config_real(c, "signal.size");
    if (s->exit == SIGNAL_HORIZON && s->hold == 0)
        return config_fail(c, "signal.hold", e,
            "none: a position would never end with signal.exit horizon; give bars, or use signal.exit opposite or "
            "neutral");
    return true;
}
